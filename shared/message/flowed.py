"""format=flowed undone: paragraphs whole again, quotes kept (RFC 3676 §4)."""


def unflow(text: str, *, delete_space: bool) -> str:
    """Return text with LF line ends whose soft line breaks are joined, stuffing undone, quote depth as `> `.

    `delete_space`: DelSp=yes, the blank before a soft break was added by the sender's program.
    """
    lines = text.split("\n")
    is_ended = len(lines) > 1 and lines[-1] == ""
    if is_ended:
        lines.pop()
    paragraphs: list[str] = []
    pieces: list[str] = []
    depth = 0
    for line in lines:
        content = line.lstrip(">")
        line_depth = len(line) - len(content)
        content = content.removeprefix(" ")
        is_signature = content == "-- "
        if pieces and (line_depth != depth or is_signature):  # a soft break before another depth is a hard one
            paragraphs.append(_paragraph(depth, pieces))
            pieces = []
        depth = line_depth
        is_flowed = content.endswith(" ") and not is_signature
        pieces.append(content[:-1] if is_flowed and delete_space else content)
        if not is_flowed:
            paragraphs.append(_paragraph(depth, pieces))
            pieces = []
    if pieces:
        paragraphs.append(_paragraph(depth, pieces))
    return "\n".join(paragraphs) + ("\n" if is_ended else "")


def _paragraph(depth: int, pieces: list[str]) -> str:
    text = "".join(pieces)
    return f"{'>' * depth} {text}" if depth else text

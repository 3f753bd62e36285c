"""GMime's reading of messages, one JSON line each, for `real_mail`: run by the interpreter that has PyGObject.

Paths stand on standard input, one a line. Only the standard library and Debian's python3-gi with gir1.2-gmime-3.0.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any


def gmime() -> Any:
    """Return the binding, which only this interpreter has."""
    importlib.import_module("gi").require_version("GMime", "3.0")
    library = importlib.import_module("gi.repository.GMime")
    library.init()
    return library


def octets_of(library: Any, data_wrapper: Any) -> bytes:
    """Return a part's content, transfer encoding undone."""
    stream = library.StreamMem.new()
    data_wrapper.write_to_stream(stream)
    return bytes(stream.get_byte_array())


def text_of(library: Any, part: Any) -> str:
    """Return a part's text, octet by octet where GMime hands over what is no UTF-8."""
    try:
        return (part.get_text() or "") if isinstance(part, library.TextPart) else ""
    except UnicodeDecodeError:
        return octets_of(library, part.get_content()).decode("latin-1")


def mailboxes(library: Any, addresses: Any) -> list[list[str]]:
    """Return display names and addresses, those of groups among them."""
    found: list[list[str]] = []
    for index in range(addresses.length() if addresses else 0):
        address = addresses.get_address(index)
        if isinstance(address, library.InternetAddressMailbox):
            found.append([address.get_name() or "", address.get_addr() or ""])
        else:
            found += mailboxes(library, address.get_members())
    return found


def leaves(library: Any, message: Any) -> tuple[list[str], list[list[Any]]]:
    """Return the texts, and name and octets of each leaf that is no text or has a name or is attached."""
    texts: list[str] = []
    attached: list[list[Any]] = []
    parts = library.PartIter.new(message.get_mime_part())
    while parts.is_valid():
        part = parts.get_current()
        if isinstance(part, library.MessagePart):
            attached.append(
                [part.get_content_disposition() and part.get_content_disposition().get_parameter("filename"), None]
            )
            depth = parts.get_path()
            while parts.next() and (parts.get_path() or "").startswith(f"{depth}."):
                pass
            continue
        if isinstance(part, library.Part):
            kind = part.get_content_type()
            disposition = part.get_disposition() or ""
            is_attached = disposition.lower() == "attachment" or bool(part.get_filename())
            if kind.is_type("text", "*") and not is_attached:
                texts.append(text_of(library, part))
            else:
                content = part.get_content()
                attached.append([part.get_filename(), len(octets_of(library, content)) if content else 0])
        if not parts.next():
            break
    return texts, attached


def reading(library: Any, octets: bytes) -> dict[str, Any]:
    """Return what `real_mail` compares."""
    stream = library.StreamMem.new_with_buffer(octets)
    parser = library.Parser.new_with_stream(stream)
    message = parser.construct_message(None)
    if message is None:
        return {"failed": "no message"}
    texts, attached = leaves(library, message)
    date = message.get_date()
    return {
        "subject": message.get_subject(),
        "from": mailboxes(library, message.get_from()),
        "date": date.to_unix() if date else None,
        "text": texts,
        "attachments": attached,
    }


def main() -> None:
    """Answer each path with one line."""
    library = gmime()
    for line in sys.stdin:
        octets = Path(line.rstrip("\n")).read_bytes()
        if octets.startswith(b"From "):  # RFC 4155: the line is the mailbox's, not the message's
            octets = octets.partition(b"\n")[2]
        sys.stdout.write(json.dumps(reading(library, octets)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

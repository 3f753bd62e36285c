"""What of a text is new: the text cut into what its sender wrote, what is quoted, and the signature; nothing is lost.

Line by line and in linear time: no line longer than an attribution can be is looked into, and each look ahead is
bounded. For top posting, bottom posting and answers in between; in plain text by its marks (`>`, attributions, header
blocks of earlier messages), in HTML by its elements too. A forwarded message is no quote: its content is what the
sender wanted read, so from the forward's mark on all is new. Where nothing new stands before a header block or before
an attribution without quote marks, the text is taken as a whole, for then the earlier message is the message.

Standard library only; `html_segments` alone loads the reader of HTML, when it is called. RFC 3676 §4.3, §4.5.
"""

from shared.message.segments.model import Segment, SegmentedText, SegmentKind
from shared.message.segments.views import html_segments, new_text, segmented_text, segments

__all__ = ["Segment", "SegmentKind", "SegmentedText", "html_segments", "new_text", "segmented_text", "segments"]

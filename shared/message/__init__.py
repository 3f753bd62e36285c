"""One reading of every message: from its octets to the Email of RFC 8621, and to text fit for a model and a person.

Both houses read mail here, so that the person sees what the agent saw. Total: any octets give a value, never an
exception; linear: hostile octets cost no more each than honest ones; capped: `limits` names what one message may cost,
`Message.defects` says what was wrong. Standards: RFC 5322, 6532, 2045 to 2047, 2231, 3676, 5256, 8621 §4.

Only the standard library, but for `html`, which alone imports selectolax and is imported by no module of this package
until a text is asked for: the executor's parent process never loads it. Nothing here opens a file or a socket.
"""

from shared.message.attachments import AttachmentForm, AttachmentOutcome, AttachmentText, attachment_text
from shared.message.authentication import (
    Authentication,
    AuthenticationProperty,
    AuthenticationResults,
    AuthenticationVerdict,
    Belief,
    MethodResult,
    authentication,
    parse_authentication_results,
)
from shared.message.bodies import BodyLists, BodyValue, body_lists, body_value, cut_value, has_attachment
from shared.message.defects import Defect, DefectCode
from shared.message.email import (
    BODY_PROPERTIES,
    CONTENT_PROPERTIES,
    DEFAULT_BODY_PROPERTIES,
    DEFAULT_EMAIL_PROPERTIES,
    LEAF_PROPERTIES,
    SERVER_PROPERTIES,
    UnknownProperty,
    check_properties,
    email_json,
)
from shared.message.fields import JSON, HeaderField
from shared.message.flags import Fact, Flag, flags
from shared.message.headers import BadHeaderProperty, HeaderForm, HeaderProperty, parse_header_property
from shared.message.links import LinkConcern, LinkFinding, defang, host_of, hosts_of_links, link_findings
from shared.message.model import Message, Part
from shared.message.parser import parse
from shared.message.reading import BodyChoice, HiddenText, HidingTrick, Link, ReadableText, TextSource
from shared.message.segments import Segment, SegmentedText, SegmentKind, html_segments, new_text, segmented_text
from shared.message.subject import base_subject
from shared.message.text import preview, preview_of, readable_text

__all__ = [
    "BODY_PROPERTIES",
    "CONTENT_PROPERTIES",
    "DEFAULT_BODY_PROPERTIES",
    "DEFAULT_EMAIL_PROPERTIES",
    "JSON",
    "LEAF_PROPERTIES",
    "SERVER_PROPERTIES",
    "AttachmentForm",
    "AttachmentOutcome",
    "AttachmentText",
    "Authentication",
    "AuthenticationProperty",
    "AuthenticationResults",
    "AuthenticationVerdict",
    "BadHeaderProperty",
    "Belief",
    "BodyChoice",
    "BodyLists",
    "BodyValue",
    "Defect",
    "DefectCode",
    "Fact",
    "Flag",
    "HeaderField",
    "HeaderForm",
    "HeaderProperty",
    "HiddenText",
    "HidingTrick",
    "Link",
    "LinkConcern",
    "LinkFinding",
    "Message",
    "MethodResult",
    "Part",
    "ReadableText",
    "Segment",
    "SegmentKind",
    "SegmentedText",
    "TextSource",
    "UnknownProperty",
    "attachment_text",
    "authentication",
    "base_subject",
    "body_lists",
    "body_value",
    "check_properties",
    "cut_value",
    "defang",
    "email_json",
    "flags",
    "has_attachment",
    "host_of",
    "hosts_of_links",
    "html_segments",
    "link_findings",
    "new_text",
    "parse",
    "parse_authentication_results",
    "parse_header_property",
    "preview",
    "preview_of",
    "readable_text",
    "segmented_text",
]

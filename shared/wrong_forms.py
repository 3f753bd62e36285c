"""What is wrong with the form of a value, in words of ours: those of pydantic are for programmers, and quote values.

Used for the files of operators and for what one house asks the other; intake has words of its own.
"""

from typing import Final

from pydantic_core import ErrorDetails

# By the kind of pydantic's error; a name in braces is in its context.
_WORDS: Final = {
    "missing": "is missing",
    "extra_forbidden": "is unknown",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a number",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be {le} or less",
    "string_type": "must be text",
    "string_sub_type": "must be text",
    "string_too_short": "must have {min_length} characters or more",
    "string_too_long": "must have {max_length} characters or fewer",
    "string_pattern_mismatch": "must be of the form {pattern}",
    "literal_error": "must be one of {expected}",
    "enum": "must be one of {expected}",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "set_type": "must be a list",
    "frozen_set_type": "must be a list",
    "too_short": "must have {min_length} entries or more",
    "too_long": "must have {max_length} entries or fewer",
    "dict_type": "must be a table",
    "mapping_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
    "path_type": "must be a path",
    "date_type": "must be a date",
    "date_parsing": "must be a date",
    "date_from_datetime_parsing": "must be a date",
    "datetime_type": "must be a date and time",
    "datetime_parsing": "must be a date and time",
    "datetime_from_date_parsing": "must be a date and time",
    "timezone_aware": "must be a time with its zone",
    "time_delta_type": "must be a length of time",
    "time_delta_parsing": "must be a length of time",
    "url_type": "must be an address",
    "url_parsing": "must be an address",
    "url_scheme": "must be an address that begins with {expected_schemes}",
    "ip_any_address": "must be an IP address",
    "json_invalid": "is not JSON",
}
_OTHER: Final = "is of another form"

# What a validator of ours says, in its words.
_OURS: Final = "Value error, "


def wrong_form(mistake: ErrorDetails) -> str:
    """Return what is wrong with a value, to follow its name; `mistake` with its context."""
    if mistake["type"] == "value_error":
        return mistake["msg"].removeprefix(_OURS)
    return _WORDS.get(mistake["type"], _OTHER).format_map(mistake.get("ctx", {}))

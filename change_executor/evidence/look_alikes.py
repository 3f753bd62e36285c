"""Names of hosts that look like one of somebody known here and are another; pure.

A caution that comes with ordinary mail is soon read by nobody, so what is found is what an eye passes over: letters
drawn alike (`rn` for `m`, `1` for `l`), a hyphen more or less, and one letter put in, left out, replaced or changed
about in a name of some length. An added word (`shop-service.example` for `shop.example`) is not among it: branches and
resellers have such names.
"""

from collections.abc import Iterable
from typing import Final

from shared.message.domains import KnownHosts, is_same_or_within, readable_host

# Of shorter names too many honest ones are a letter apart: `web.de` and `wob.de`, `ebay` and `etsy` are nearly that.
_MIN_LETTERS: Final = 6
# What stands before the country's own two letters where names are registered one level further down: co.uk, com.au.
_SECOND_LEVEL: Final = frozenset({"ac", "co", "com", "edu", "gov", "gv", "ltd", "me", "ne", "net", "or", "org", "plc"})


class Acquaintances:
    """Hosts of whom mail was moved here by a person's decision."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self._names = sorted({name for host in hosts if (name := readable_host(host).removeprefix("www."))})
        self._hosts = KnownHosts(self._names)

    def imitated_by(self, host: str) -> str | None:
        """Return the known host that this one can be taken for; None where it is one of them, or like none."""
        name = readable_host(host).removeprefix("www.")
        if any(is_same_or_within(name, known) for known in self._names):
            return None
        alike = self._hosts.imitated_by(name)
        return alike or next((known for known in self._names if _is_nearly(name, known)), None)


def _is_nearly(name: str, known: str) -> bool:
    """Whether the registered names of two hosts, under the same top domain, differ by what an eye passes over."""
    (mine, top), (theirs, other_top) = _registered(name), _registered(known)
    if top != other_top or mine == theirs:
        return False
    bare, other_bare = mine.replace("-", ""), theirs.replace("-", "")
    if min(len(bare), len(other_bare)) < _MIN_LETTERS:
        return False
    return bare == other_bare or _is_one_edit(mine, theirs)


def _registered(name: str) -> tuple[str, str]:
    """The label that somebody registered, and what it is registered under; no list of all such domains is kept."""
    labels = name.split(".")
    under = 2 if len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVEL else 1  # noqa: PLR2004 - labels
    return (labels[-under - 1] if len(labels) > under else ""), ".".join(labels[-under:])


def _is_one_edit(one: str, other: str) -> bool:
    """Whether one letter is put in, left out or replaced, or two neighbours have changed places."""
    if len(one) > len(other):
        one, other = other, one
    if len(other) - len(one) > 1:
        return False
    at = next((place for place, letter in enumerate(one) if letter != other[place]), len(one))
    if len(one) < len(other):
        # A plural and a numbered sister are names of their own.
        return one[at:] == other[at + 1 :] and not (at == len(one) and (other[at] == "s" or other[at].isdigit()))
    if one[at].isdigit() and other[at].isdigit():
        return False
    swapped = one[at + 1 : at + 2] + one[at]
    return one[at + 1 :] == other[at + 1 :] or (other[at : at + 2] == swapped and one[at + 2 :] == other[at + 2 :])

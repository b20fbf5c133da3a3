"""Finds secrets in text and puts a mask in their place: provider keys, card numbers, passwords in context."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator

import regex

KEY_MASK = "[key removed]"
CARD_MASK = "[card number removed]"
PASSWORD_MASK = "[password removed]"  # noqa: S105 (the mask itself)

# Shapes that providers document for their keys; each is long enough not to meet ordinary prose.
_KEYS = regex.compile(
    r"""
    -----BEGIN[ A-Z]*PRIVATE\ KEY-----.*?(?:-----END[ A-Z]*PRIVATE\ KEY-----|\Z)
    | (?<![\w-]) (?:
        sk-(?:ant-|proj-|svcacct-|or-v1-)?[A-Za-z0-9_-]{16,}
      | (?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}
      | whsec_[A-Za-z0-9+/=]{16,}
      | AIza[A-Za-z0-9_-]{30,}
      | ya29\.[A-Za-z0-9_-]{20,}
      | (?:AKIA|ASIA)[A-Z0-9]{16}
      | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,} | glpat-[A-Za-z0-9_-]{16,}
      | xox[abeoprs]-[A-Za-z0-9-]{10,}
      | hf_[A-Za-z0-9]{20,} | npm_[A-Za-z0-9]{30,} | pypi-[A-Za-z0-9_-]{30,} | ph[cx]_[A-Za-z0-9]{20,}
      | shp(?:at|ss|ca)_[A-Fa-f0-9]{20,}
      | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
      | [a-f0-9]{32}-us\d{1,2}
      | \d{8,10}:AA[A-Za-z0-9_-]{30,}
      | (?:SK|AC)[a-f0-9]{32}
      | eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+
    ) (?![\w-])
    """,
    regex.VERBOSE | regex.DOTALL,
)
_BEARER = regex.compile(r"(?i)\b(bearer\s+)(?=[\w.~+/-]*\d)[A-Za-z0-9_.~+/-]{20,}=*")
_URL_LOGIN = regex.compile(r"(?i)\b([a-z][a-z0-9+.-]*://[^\s:/@\[\]]+:)([^\s@/\[\]]+)(?=@)")

_LABEL = (
    r"pass[- ]?words?|pass(?=\s*[:=])|pass[- ]?phrases?|pass[- ]?codes?|pass[- ]?wort|kenn[- ]?wort|contraseña|"
    r"mot\s+de\s+passe|senha|pwd|pw|pin|api[- _]?(?:key|token)|secret[- _]?key|client[- _]?secret|"
    r"access[- _]?token|auth[- _]?token"
)
_LABELLED = regex.compile(
    rf"""(?ix) \b (?P<label>{_LABEL}) \b
    (?P<link> (?:\s+(?:for|to|of|on|für|zu|del?|du|da|do)\s+[\w.'’ -]{{1,40}}?)? \s*
        (?: (?P<sign>[:=]) | \b(?:is\s+now|is|was|ist|es|est|lautet|will\s+be)\b ) \s* )
    (?P<quote>["'“‘«`]?) (?P<value>[^\s"'“”‘’«»`\[\]]{{3,}}) """
)
# What people say *about* a password after "is"; anything else standing last in its sentence is one.
_ABOUT = set(
    """wrong weak expired invalid correct missing required gone lost set reset changed incorrect empty strong
    safe secure old new unknown stolen shared public compromised forgotten unsafe short long hidden stored
    encrypted hashed right fine good bad broken leaked protected blocked locked optional mandatory hard easy
    confusing annoying needed outdated simple complicated rotated working okay below above here there see ask
    elsewhere none same different unchanged updated sent emailed removed masked deleted""".split()  # noqa: SIM905
)

_DIGITS = regex.compile(r"(?<!\d)\d(?:[ \u00a0.\-]?\d){12,}(?!\d)")
_ISSUERS = regex.compile(r"4|5[1-5]|2[2-7]|3[47]|3[068]|6(?:011|4|5|2)")


def mask(text: str) -> str:
    """The text with every secret found replaced by a mask in square brackets. Applying it twice changes
    nothing more."""
    text = _KEYS.sub(KEY_MASK, text)
    text = _BEARER.sub(lambda match: match[1] + KEY_MASK, text)
    text = _URL_LOGIN.sub(lambda match: match[1] + PASSWORD_MASK, text)
    text = _DIGITS.sub(_mask_cards, text)
    return _LABELLED.sub(_mask_labelled(text), text)


def _mask_labelled(text: str) -> Callable[[regex.Match[str]], str]:
    def replace(match: regex.Match[str]) -> str:
        value = match["value"].rstrip(".,;:!?)")
        ends = regex.match(r"[\"'”’»`]?[.,;!?)]*\s*(?:$|\n)", text[match.start("value") + len(value) :])
        given = bool(match["quote"]) or (bool(ends) and value.casefold() not in _ABOUT)
        if len(value) < 3 or not (_looks_secret(value, match["sign"]) or given):
            return match[0]
        mask_text = KEY_MASK if "key" in match["label"].lower() or "token" in match["label"].lower() else ""
        tail = match["value"][len(value) :]
        return f"{match['label']}{match['link']}{match['quote']}{mask_text or PASSWORD_MASK}{tail}"

    return replace


def _looks_secret(value: str, sign: str | None) -> bool:
    """Letters mixed with digits or signs, or capitals inside: what nobody writes as an ordinary word."""
    digits, letters = any(c.isdigit() for c in value), any(c.isalpha() for c in value)
    odd = any(not c.isalnum() and c not in "-/'’.,()" for c in value)
    capitals_inside = any(c.isupper() for c in value[1:]) and any(c.islower() for c in value)
    return (digits and letters) or odd or (sign is not None and (digits or capitals_inside))


def _mask_cards(match: regex.Match[str]) -> str:
    run, kept, at = match[0], [], 0
    for start, end in _cards(run):
        kept.append(run[at:start] + CARD_MASK)
        at = end
    return "".join(kept) + run[at:]


def _cards(run: str) -> Iterator[tuple[int, int]]:
    """Stretches of whole digit groups that are a card number; a longer run may hold one beside an expiry."""
    groups = [match.span() for match in regex.finditer(r"\d+", run)]
    first = 0
    while first < len(groups):
        for last in range(len(groups), first, -1):
            start, end = groups[first][0], groups[last - 1][1]
            if _is_card(run[start:end]):
                yield start, end
                first = last - 1
                break
        first += 1


def _is_card(stretch: str) -> bool:
    digits = [unicodedata.decimal(c) for c in stretch if c.isdecimal()]
    number = "".join(map(str, digits))
    if not 13 <= len(digits) <= 19 or not _ISSUERS.match(number) or len(set(digits)) == 1:
        return False
    doubled = [d * 2 - 9 * (d > 4) if place % 2 else d for place, d in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0

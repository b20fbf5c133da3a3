"""Recognises text that speaks to the machinery instead of about the business.

Such text in a summary or a stored document would be read by a model as if it came from us. Wishes about tone,
language and topics are no such thing and pass, and so does ordinary business prose: a rule here needs the
words of the machine (instructions, prompts, tools), not merely an imperative.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import unicodedata
from urllib.parse import unquote, urlsplit

import regex

from memberintel.lib import overrides

_VERB = r"(?:ignore|disregard|forget|override|overrule|bypass|circumvent)"
_EARLIER = (
    r"(?:previous|prior|above|earlier|preceding|foregoing|original|initial|existing|system|built[- ]in)"
)
_ORDERS = (
    r"(?:instructions?|prompts?|directives?|guidelines?|rules?|programming|guardrails?|system\s+messages?)"
)
_MACHINE = r"(?:assistants?|advisors?|ai|models?|llms?|chatbots?|bots?|agents?|you)"
_TOOLS = r"(?:update_customer_brain|search_memory|search_sessions|site_metrics)"
_PERSON = r"(?:owner|customer|user|admin(?:istrator)?|operator)"

_RULES: dict[str, tuple[str, ...]] = {
    "it tries to override the advisor's rules": (
        rf"\b{_VERB}\W+(?:\w+\W+){{0,3}}?(?:all|any|every)\W+(?:\w+\W+){{0,3}}?{_EARLIER}\W+(?:\w+\W+)?{_ORDERS}\b",
        rf"(?:^|[.!?:;\"'“”()*\n-]\s*|\b(?:please|now|must|should|to|and|then|will|can|just)\W+|\b{_MACHINE}\W+)"
        rf"{_VERB}\W+(?:all\W+|of\W+|the\W+|your\W+|my\W+|these\W+|those\W+|any\W+|everything\W+)*"
        rf"{_EARLIER}\W+{_ORDERS}\b",
        rf"\b{_VERB}\W+(?:all\W+|of\W+|any\W+)*your\W+(?:\w+\W+){{0,2}}?{_ORDERS}\b",
        rf"\b{_VERB}\W+(?:everything|anything|all)\W+(?:\w+\W+){{0,2}}?(?:above|before\s+this|you\s+were\s+told)\b",
        r"\b(?:reveal|print|output|repeat|show|leak|dump|recite|disclose)\W+(?:\w+\W+){0,3}?"
        r"(?:system|hidden|initial|secret|developer)\W+(?:prompt|instructions?|message)\b",
        r"\b(?:god|dan|jailbreak|unrestricted)\s+mode\b|\b(?:enter|enable|activate|switch\s+to|you\s+are\s+in)\W+developer\s+mode\b",
        r"\bjailbr(?:eak|oken)\b|\bdo\s+anything\s+now\b",
        r"\byou\s+are\s+(?:now\s+|no\s+longer\s+)(?:dan\b|unrestricted|unfiltered|jailbroken|bound\s+by|free\s+(?:from|of)\s+"
        r"(?:all\s+|any\s+|your\s+)?(?:rules|restrictions|instructions)|an?\s+(?:unrestricted|unfiltered|evil|"
        r"different\s+(?:ai|assistant|model)|root|system|admin\w*)\b)",
        rf"^\W*(?:new|updated|real|actual)\s+(?:system\s+)?{_ORDERS}\s*:",
        r"\bend\s+of\s+(?:the\s+)?(?:system\s+)?prompt\b",
        r"\bwhen(?:ever)?\s+(?:you|the\s+(?:assistant|advisor|model|ai))\s+(?:reads?|sees?|loads?|process(?:es)?)\s+this\b",
        rf"\b(?:your|all)\W+(?:\w+\W+){{0,2}}?{_ORDERS}\W+(?:\w+\W+){{0,3}}?(?:are\W+void|no\W+longer\W+(?:apply|bind)"
        r"|do\W+not\W+(?:apply|count)|(?:were\W+)?never\W+(?:written|given))\b",
        rf"\bnone\W+of\W+your\W+(?:\w+\W+){{0,2}}?{_ORDERS}\W+appl(?:y|ies)\b",
        rf"\b{_MACHINE}\W+(?:no\W+longer\W+(?:have|has|need)s?\W+to|need\W+not|must\W+not|(?:do|does)\W+not\W+(?:have|need)\W+to)"
        rf"\W+(?:follow|obey|respect|keep)\W+(?:\w+\W+){{0,3}}?{_ORDERS}\b",
        rf"\b(?:{_VERB}|set\W+aside|drop)\W+(?:\w+\W+){{0,3}}?(?:{_ORDERS}\W+)?(?:that\W+)?you\W+"
        r"(?:were|are|have\W+been)\W+(?:told|given|trained)\b",
        rf"(?:^|[.!?:;,\n]\s*|\b(?:and|you|must|now|please)\W+)(?:act|behave|respond|answer|speak)\W+(?:\w+\W+){{0,4}}?without\W+(?:any\W+)?(?:{_ORDERS}|restrictions?|limits)\b",
        r"\b(?:assistant|advisor|ai|model|llm|chatbot)\W+(?:must|shall|will|should|has\W+to)\W+(?:\w+\W+){0,4}?"
        r"(?:obey|comply|only\W+answer|stop\W+mentioning)\b",
        r"\brepeat\W+(?:\w+\W+){0,3}?(?:text|words|lines?|everything)\W+above\b",
        r"\b(?:what|how)\W+(?:\w+\W+){0,2}?(?:your|the)\W+system\W+prompt\b",
        rf"\b(?:your|these|the)\W+(?:\w+\W+){{0,2}}?{_ORDERS}\W+in\W+(?:every|each|the\W+next)\W+(?:answer|reply|summary)\b",
        r"\b(?:ab\s+jetzt|ab\s+sofort)\W+gelten\W+(?:deine|ihre)\W+(?:\w+\W+)?(?:anweisungen|regeln)\W+nicht\b",
        *overrides.patterns(),
    ),
    "it imitates a role of the conversation": (
        r"(?:^|\n)[\W_]*(?:assistant|human|(?-i:SYSTEM))\s*:",
        r"(?:^|\n)[\W_]*(?:system|user|assistant|developer)\s+(?:message|prompt|note|override|instructions?)\s*:",
        rf"(?:^|\n)[\W_]*(?:system|user)\s*:(?=[^\n]*\b(?:you|your|{_PERSON}|advisor|assistant|approved?|ignore|must|obey"
        r"|instructions?|prompt)\b)",
        r"<\|[^|\n]{0,40}\|>|\[/?inst\]|<</?sys>>|\[/?(?:system|assistant|developer)\b[^\]\n]{0,20}\]",
        r"</?\s*(?:system|assistant|developer|human|user|transcript|instructions?|prompt)\b[^<>\n]{0,200}>",
        # Our own delimiters: to name them is a lesson in HTML, to close one and go on is a forgery.
        r"<\s*(?:section|entry)\s[^<>\n]{0,200}(?:name|label)\s*=|</\s*(?:section|entry)\s*>\s*(?:<|\w)",
        r"(?:^|\n)\W*`{3,}\s*(?:system|assistant|developer)\b",
        r"(?:^|\n)\s*#{1,6}\s*(?:system|assistant|developer|instructions?|human|user)\b\s*:?\s*(?:\n|$)",
        r"\b(?:begin|start)\s+(?:of\s+)?(?:system|developer)\s+(?:prompt|message|instructions?)\b",
    ),
    "it imitates or orders a tool call": (
        rf"\b{_TOOLS}\s*[({{]|\b(?:call|use|run|invoke|execute|trigger)\W+(?:\w+\W+){{0,2}}?{_TOOLS}\b",
        r"</?\s*(?:tool_?calls?|tool_?use|tool_?results?|function_?calls?|invoke|parameter|antml:\w+)\b",
        r"[\"'](?:tool_calls?|tool_use|function_call|tool_call_id)[\"']\s*:|[\"'](?:tool|function)[\"']\s*:.{0,80}[\"'](?:input|arguments|parameters)[\"']",
        r"\{\s*[\"']name[\"']\s*:.{0,80}[\"'](?:arguments|parameters|input)[\"']\s*:",
        r"\b(?:call|invoke)\W+the\W+(?:\w+\W+){1,3}(?:tool|function)\s+(?:with|now|immediately)\b",
    ),
    "it claims an approval": (
        rf"\b{_PERSON}\s+(?:has\s+|have\s+)?(?:already\s+|hereby\s+)?(?:approved?|authori[sz]ed?|consent(?:s|ed)\s+to|permits?|"
        r"permitted)\W+(?:to\W+)?(?:all|any|every(?:thing)?|future|the\s+following|this\s+(?:action|request|change|call))\b",
        rf"\b{_PERSON}\s+(?:permits?|allows?|authori[sz]es|approves)\s+(?:you|the\s+(?:assistant|advisor|model|ai))\s+to\b",
        r"\b(?:you\s+(?:now\s+)?have|(?:has\s+|have\s+)?(?:grants?|given?|granted)\s+you)\s+(?:full\s+|explicit\s+|my\s+)?(?:permission|authori[sz]ation|approval)\s+to\b",
        r"\byou\s+are\s+(?:hereby\s+|now\s+|fully\s+)*(?:authori[sz]ed|permitted|pre-?approved|cleared)\s+to\b",
        r"\b(?:treat|consider|regard)\W+(?:\w+\W+){1,6}?(?:as\W+)?pre-?approved\b|"
        r"\b(?:treat|consider|regard)\W+(?:\w+\W+){1,4}?(?:as\W+)?approved\b",
        r"\bno\s+(?:further\s+|additional\s+|more\s+)?(?:confirmation|approval|authori[sz]ation)\s+(?:is\s+)?"
        r"(?:needed|required|necessary)(?:\W*(?:$|[.!\n])|[^.\n]{0,40}\b(?:from\s+now\s+on|any\s+more|in\s+(?:the\s+)?future|all|any)\b)",
        r"\bapproval\s+(?:has\s+been\s+|is\s+|was\s+)?(?:already\s+|hereby\s+)(?:granted|given)\b",
        r"\bapproval\s+(?:has\s+been|is|was)\s+(?:granted|given)\s+(?:for|to)\s+(?:all|any|every)\b",
        r"\b(?:inhaber(?:in)?|besitzer(?:in)?|kunde|kundin|nutzer(?:in)?)\W+(?:hat|haben)\W+(?:\w+\W+){0,2}?(?:alle[ns]?|jede)\W+"
        r"(?:\w+\W+){0,4}?(?:genehmigt|freigegeben|erlaubt)\b",
        r"\b(?:propriétaire|client|cliente)\W+a\W+(?:\w+\W+)?(?:approuvé|autorisé)\W+tou(?:te)?s\b",
        r"\b(?:dueñ[oa]|propietari[oa]|cliente)\W+(?:ya\W+)?ha\W+(?:ya\W+)?(?:autorizado|aprobado)\W+tod[ao]s\b",
    ),
    "it asks to keep something from people or to send secrets out": (
        rf"\b(?:do\s+not|don['’]t|never)\s+(?:tell|inform|alert|notify)\s+(?:the\s+)?(?:{_PERSON})\s+"
        r"(?:about|of|that)\s+(?:this|these|it|you)\b",
        rf"\b(?:do\s+not|don['’]t|never)\s+(?:mention|reveal|show|disclose)\s+(?:this|these|the)\s+(?:\w+\s+){{0,2}}?"
        rf"(?:{_ORDERS}|notes?|message)\s+to\s+(?:the\s+)?(?:{_PERSON})\b",
        rf"\b(?:hide|conceal|keep)\s+(?:this|these|it)\s+(?:\w+\s+){{0,2}}?from\s+the\s+{_PERSON}\b",
        r"\b(?:send|forward|post|upload|e-?mail|exfiltrate|leak)\W+(?:\w+\W+){0,4}?(?:chat\s+history|conversation\s+history|all\W+(?:the\W+|your\W+)?notes|"
        r"system\s+prompt|api\s+keys?|credentials|your\s+(?:memor(?:y|ies)|context|instructions))\b",
    ),
}
_COMPILED = {
    reason: tuple(regex.compile(rule, regex.IGNORECASE | regex.MULTILINE) for rule in rules)
    for reason, rules in _RULES.items()
}

HIDDEN_LINK = "it hides where a link leads"
_SCHEMES = regex.compile(
    r"(?i)\b(?:javascript|vbscript)\s*:\s*\S|\bdata\s*:\s*(?:text/html|[\w/+.-]*;\s*base64)"
)
_REMOTE_MARKUP = regex.compile(
    r"(?i)<\s*(?:a|img|iframe|form|link|script|object|embed|svg|base|meta)\b[^>]{0,500}(?:\w\s*=|//)"
)
_IMAGE = regex.compile(r"!\[[^\]]*\]\s*[(\[]")
_LINK = regex.compile(r"(?<!!)\[([^\]\n]*)\]\(\s*<?([^\s()<>]+)>?[^)\n]*\)")
_REFERENCE = regex.compile(r"(?m)^\s*\[[^\]\n]+\]:\s*\S+")
_DISGUISED_HOST = regex.compile(r"(?i)https?://[^\s/@]*\.[^\s/@]*@")
_HOST = regex.compile(r"(?i)\b(?:https?://)?((?:[a-z0-9-]+\.)+[a-z]{2,})\b")

# Letters of other scripts that look like Latin ones, used to slip words past a reader.
_LOOKALIKES = str.maketrans(
    "аеорсухіјѕһԁԛԝвмнткАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧαορυν",
    "aeopcyxijshdqwbmhtkABEKMHOPCTYXIJSABEZHIKMNOPTYXaopuv",
)
_SMALL_CAPITALS = str.maketrans("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz")
_FIGURES = str.maketrans("0134578@$", "oieastbas")  # digits and signs in the place of letters
_MIXED = regex.compile(r"(?i)\b(?=\w*[a-z])[a-z@$0-9]*[0134578@$][a-z][a-z@$0-9]*\b")

HIDDEN_TEXT = "it hides text in a code"
_BASE64 = regex.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{40,}={0,2}(?![A-Za-z0-9+/_=-])")
_HEX = regex.compile(r"(?i)(?<![0-9a-z])(?:[0-9a-f]{2}){20,}(?![0-9a-z])")
_PROSE = 0.9  # the share of letters, spaces and the like from which decoded bytes are a text


def refusal(text: str) -> str | None:
    """Why this text may not be stored for a model to read, as the end of the sentence "refused because …";
    None when it may."""
    if _hides_a_link(text):
        return HIDDEN_LINK
    if any(_is_prose(_decoded(run)) for run in (*_BASE64.findall(text), *_HEX.findall(text))):
        return HIDDEN_TEXT
    readings = {text, *_readings(text)}
    for reason, rules in _COMPILED.items():
        if any(rule.search(reading) for rule in rules for reading in readings):
            return reason
    return None


def _readings(text: str) -> tuple[str, ...]:
    """The text as a careless reader takes it: entities decoded, look-alikes, emphasis and spacing undone."""
    folded = unquote(html.unescape(text), errors="replace")
    turned = [folded[::-1]] if regex.search("[\u202d\u202e]", folded) else []
    if not folded.isascii():  # nothing of this can be in plain text, which is most of all text
        folded = unicodedata.normalize("NFKC", folded).translate(_SMALL_CAPITALS)
        folded = regex.sub(r"\p{Cf}|(?<=\w)\p{Mn}+(?=[a-zA-Z])", "", folded)
        folded = regex.sub(r"\w+", _latinised, folded)
    plain = regex.sub(r"[*~`]+|(?<![^\W_])_+|_+(?![^\W_])", "", folded)
    spaced = regex.sub(r"\b(?:\w[ .-]){3,}\w\b", lambda match: regex.sub(r"[ .-]", "", match[0]), plain)
    spelled = _MIXED.sub(lambda match: match[0].translate(_FIGURES), plain)
    rotated = [codecs.decode(plain, "rot13")] if "rot13" in plain.casefold() else []
    return folded, plain, spaced, spelled, *turned, *rotated


def _decoded(run: str) -> bytes:
    """What a run of base64 or hexadecimal stands for; nothing when it is neither."""
    try:
        if _HEX.fullmatch(run):
            return bytes.fromhex(run)
        return base64.urlsafe_b64decode(run.replace("+", "-").replace("/", "_").rstrip("=") + "==")
    except (binascii.Error, ValueError):
        return b""


def _is_prose(data: bytes) -> bool:
    """Whether the bytes are words: keys and digests are noise, and pass."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    plain = sum(c.isalpha() or c in " \n.,;:!?'\"-" for c in text)
    return " " in text and plain >= _PROSE * len(text)


def _latinised(match: regex.Match[str]) -> str:
    """A word that mixes Latin with Greek or Cyrillic letters, in Latin; other words as they are."""
    word = match[0]
    mixed = regex.search(r"\p{Latin}", word) and regex.search(r"[\p{Greek}\p{Cyrillic}]", word)
    return word.translate(_LOOKALIKES) if mixed else word


def _hides_a_link(text: str) -> bool:
    plain = html.unescape(text)
    if any(rule.search(plain) for rule in (_SCHEMES, _REMOTE_MARKUP, _IMAGE, _REFERENCE, _DISGUISED_HOST)):
        return True
    return any(_misleads(match[1], match[2]) for match in _LINK.finditer(plain))


def _misleads(shown: str, target: str) -> bool:
    """True for a link without a visible text, or whose text names another host than the one it leads to."""
    named = _HOST.search(shown)
    if not named:
        return not regex.search(r"\w", shown)
    host = (urlsplit(target if "//" in target else f"//{target}").hostname or "").removeprefix("www.")
    return named[1].lower().removeprefix("www.") != host


def open_links(text: str) -> str:
    """Markdown links written out, so that the address is seen: `[page](https://a.b)` → `page (https://a.b)`."""
    return _LINK.sub(lambda match: match[1] if match[1] == match[2] else f"{match[1]} ({match[2]})", text)

"""How people of many languages tell a machine to drop its rules: the words, and the patterns made of them.

A command is a verb in the imperative, a word that means the machine's own rules ("all", "earlier", "your"), and a
word for rules. "Members ignored the instructions" has no imperative, "ignore the old price" no rules: both pass.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tongue:
    """The words of a language, as alternatives of a pattern. `last`: the verb stands at the end of the sentence."""

    verbs: str
    whose: str
    rules: str
    last: bool = False


TONGUES: tuple[Tongue, ...] = (
    Tongue(
        r"ignoriere?|ignorieren\s+sie|vergiss|vergesst|vergessen\s+sie|missachte\w*|umgehe?",
        r"alle[ns]?|sämtliche|bisherige\w*|vorherige\w*|vorige\w*|deine\w*|ihre\w*|eure\w*|obige\w*",
        r"anweisungen|instruktionen|regeln|vorgaben|befehle",
    ),
    Tongue(
        r"ignore[zr]?|oublie[zr]?",
        r"tou(?:te)?s|tes|vos|précédente?s|plus\s+haut|initiales|ci-dessus",
        r"instructions|consignes|règles|directives",
    ),
    Tongue(
        r"ignora|ignore|ignorad|olvida|olvide|olvídate|olvídese",
        r"tod[ao]s|tus|sus|anteriores|previas",
        r"instrucciones|indicaciones|reglas|órdenes",
    ),
    Tongue(
        r"ignora|ignorate|ignori|dimentica|dimenticate|dimentichi",
        r"tutte|tue|sue|vostre|precedenti",
        r"istruzioni|regole|direttive",
    ),
    Tongue(
        r"ignore|ignora|esqueça|esquece",
        r"tod[ao]s|suas|tuas|anteriores",
        r"instruções|regras|ordens",
    ),
    Tongue(
        r"negeer|vergeet",
        r"alle|eerdere|vorige|je|jouw|uw|bovenstaande",
        r"instructies|regels|opdrachten",
    ),
    Tongue(
        r"ignorera|glöm|ignorer|glem",
        r"alla|alle|tidigare|tidligere|dina|dine",
        r"instruktioner|instruksjoner|regler",
    ),
    Tongue(
        r"zignoruj|ignoruj|zapomnij\s+o|pomiń",
        r"wszystkie|wszystkich|poprzednie|poprzednich|swoje|swoich|twoje",
        r"instrukcje|instrukcji|polecenia|zasady|zasad",
    ),
    Tongue(
        r"игнорируй(?:те)?|забудь(?:те)?|отбрось(?:те)?",
        r"все|всё|свои|твои|ваши|предыдущие|прежние|указанные",
        r"инструкции|указания|правила|команды",
    ),
    Tongue(
        r"ігноруй(?:те)?|забудь(?:те)?",
        r"усі|всі|свої|твої|попередні",
        r"інструкції|вказівки|правила",
    ),
    Tongue(r"تجاهل(?:ي|وا)?|انس(?:َ|ى|وا)?", r"جميع|كل|كافة|السابقة", r"التعليمات|الأوامر|القواعد"),
    Tongue(
        r"yok\s+say\w*|görmezden\s+gel\w*|unut\w*",
        r"önceki|tüm|bütün",
        r"talimatları\w*|kuralları\w*",
        last=True,
    ),
    Tongue(r"अनदेखा|नज़रअंदाज़|भूल", r"सभी|पिछले|पहले", r"निर्देशों|निर्देश|नियमों|आदेशों", last=True),
)

# Scripts that write without spaces between words: no word ends to hold on to.
_DENSE = (
    r"(?:忽略|无视|無視|忘记|忘記|不要遵守).{0,8}(?:指令|指示|提示词|提示詞|规则|規則)",
    r"(?:以前|これまで|今まで|上記|すべて|全て|前).{0,10}(?:指示|命令|指令|ルール|プロンプト).{0,8}(?:無視|忘れ|破棄)",
    r"(?:이전|지금까지|위|모든).{0,10}(?:지시|명령|규칙|프롬프트).{0,6}(?:무시|잊)",
)


def patterns() -> tuple[str, ...]:
    """One pattern for each language, for use with IGNORECASE and MULTILINE."""
    return (*map(_pattern, TONGUES), *_DENSE)


def _pattern(tongue: Tongue) -> str:
    rules = rf"(?:{tongue.whose})\W+(?:\w+\W+){{0,3}}?(?:{tongue.rules})\b"
    after = rf"(?:{tongue.rules})\W+(?:\w+\W+){{0,2}}?(?:{tongue.whose})\b"  # "consignes données plus haut"
    if tongue.last:
        return rf"\b{rules}\W+(?:\w+\W+){{0,2}}?(?:{tongue.verbs})"
    return rf"\b(?:{tongue.verbs})\W+(?:\w+\W+){{0,2}}?(?:{rules}|{after})"

"""Phrases by which a sentence shows what it does: decide, promise, advise, state, or merely keep company.

A rule is a regular expression in which a space stands for any white space and ' also for the curly apostrophe.
Weights say how sure a phrase is: 4 says it outright, 1 hints.
"""

from __future__ import annotations

import regex

type Rules = tuple[tuple[int, regex.Pattern[str]], ...]

_FLAGS = regex.IGNORECASE | regex.DOTALL


def _compiled(rule: str) -> regex.Pattern[str]:
    return regex.compile(rule.replace(" ", r"\s+").replace("'", "['’]"), _FLAGS)


def _weighted(*rules: tuple[int, str]) -> Rules:
    return tuple((weight, _compiled(rule)) for weight, rule in rules)


DECIDES = _weighted(
    (
        4,
        r"\b(?:i|we)(?:'(?:ve|ll|d|m|re)| (?:have|will|am|are|had|would))? (?:\w+ly |just |also |now |"
        r"then |both |all )?(?:decided|decide|chose|chosen|opted|settled|picked|agreed|committed)\b",
    ),
    (
        4,
        r"\b(?:decision is|decided\s*:|decision\s*:|it'?s decided|made up my mind|final answer|"
        r"agreed\s*:|deal\s*[:,.!])",
    ),
    (
        3,
        r"\b(?:let's|let us|we'll|i'll|we will|i will|(?:i'm|we're|i am|"
        r"we are) going to) (?:go (?:with|for|ahead)|keep|drop|stop|cancel|use|set|raise|lower|launch|"
        r"switch|move|stick|start with|cut|price|charge|offer|skip|postpone|close|open|hire|take|"
        r"make it)\b",
    ),
    (
        3,
        r"\b(?:go|going) (?:with|ahead with)\b(?! (?:that|it|the flow)\b)",
    ),
    (
        3,
        r"\b(?:we|i) (?:won't|will not|are not going to|am not going to)\b",
    ),
    (
        2,
        r"\b(?:instead of|rather than)\b",
    ),
    (
        3,
        r"\btak(?:e|ing) a (?:shot|chance)\b|\bgo(?:ing|nna)? (?:to )?try (?:it|that|this) out\b|"
        r"\bgonna try\b",
    ),
    (
        3,
        r"\b(?:hemos|he|habemos) decidido\b|\bdecid[íi]\b|\b(?:nous avons|j'ai) (?:décidé|choisi)\b",
    ),
    (
        3,
        r"\b(?:wir|ich) (?:haben|habe|hab)\b.{0,80}\b(?:entschieden|beschlossen|gewählt)\b|\b(?:wir|"
        r"ich) (?:nehmen|nehme)\b",
    ),
)

PROMISES = _weighted(
    (
        4,
        r"\b(?:by|before|until|on|next|this) (?:mon|tues|wednes|thurs|fri|satur|sun)(?:day)?\b|"
        r"\b(?:next|this) (?:week|month|quarter)\b|\btomorrow\b|\bby (?:the end|end of)\b|\bnext fri\b",
    ),
    (
        3,
        r"\b(?:i|we)(?:'ll| will|'m going to| am going to|'re going to| are going to|'m gonna|"
        r"'re gonna)\b",
    ),
    (
        3,
        r"\b(?:i|we) (?:still )?(?:(?:have|ought|hope|promise) to|need|must|should|plan|intend|want)\b",
    ),
    (
        3,
        r"\b(?:need help with|gotta|still (?:need|have to|searching|looking|waiting|missing|open)|"
        r"to[- ]do|next steps?|remains? to)\b",
    ),
    (
        3,
        r"\b(?:looking|searching|hunting|waiting) for\b|\bon the hunt for\b|\b(?:working|work) on\b|"
        r"\bwrapping up\b|\bin the works\b",
    ),
    (
        2,
        r"\bplan(?:s|ning|ned)?\b|\bgoing to\b|\bgonna\b|\bwanna\b|\bpreparing\b|\bset up\b",
    ),
    (
        2,
        r"\b(?:muss|müssen|sollte|werde|wollen|nächste woche|bis \w+tag)\b",
    ),
    (
        2,
        r"\b(?:tengo que|hay que|voy a|vamos a|je dois|il faut|je vais|nous allons)\b",
    ),
)

ADVISES = _weighted(
    (
        3,
        r"\b(?:i'll|i will|i can|i could) (?:send|draft|write|prepare|check|look|help|share|remind|"
        r"make|ask|review|put)\b",
    ),
    (
        2,
        r"\b(?:next time|before we (?:talk|speak)|until then|next step)\b",
    ),
    (
        2,
        r"\b(?:you should|you could|i'd suggest|i suggest|i recommend|i'd recommend|start (?:by|"
        r"with))\b",
    ),
)

STATES = _weighted(
    (
        3,
        r"(?<!\w)[$€£¥]\s?\d|\d\s?(?:%|percent|per cent|usd|eur|dollars|euros|members|subscribers|"
        r"customers|students|people|hours|days|weeks|months|years)\b",
    ),
    (
        3,
        r"\b(?:i|we)(?:'ve)? (?:just |recently |finally |already )?(?:lost|got|started|launched|hired|"
        r"bought|sold|signed|moved|opened|closed|found|met|quit|joined|built|finished|won|received|"
        r"rented|raised|hosted|run|own|sell|teach|work|live|charge|began|made|set|took|rehearsed|"
        r"been (?:to|in|at)|had|have)\b",
    ),
    (
        3,
        r"^(?:just |yesterday )?(?:lost|got|started|launched|hired|bought|sold|signed|moved|opened|"
        r"met|rehearsed|been)\b",
    ),
    (
        3,
        r"\b(?:i|we) (?:prefer|love|like|hate|dislike|enjoy|can't stand|don't (?:like|want|use|"
        r"have))\b|\bi'm after\b|\bmy (?:top pick|favou?rite|preference|passion)\b",
    ),
    (
        2,
        r"\b(?:my|our) (?:\w+ ){1,4}?(?:is|are|was|were|has|have|costs?|runs?|starts?|opens?|opened|"
        r"went|grew|fell)\b",
    ),
    (
        2,
        r"\b(?:i'm|i am|we're|we are) (?:an?|the|from|in|at|based|currently|starting|running|reading|"
        r"using|passionate)\b",
    ),
    (
        1,
        r"\b(?:because|'cause|since|cuz)\b",
    ),
    (
        2,
        r"\b(?:ich bin|wir sind|wir haben|ich habe|unser\w*|mein\w*)\b|\b(?:soy|somos|tengo|tenemos|"
        r"je suis|nous avons|notre|mon|ma)\b",
    ),
)

SETTLES = _compiled(
    r"\b(?:done|finished|completed|sent|wrote|written|published|launched|fixed|settled|sorted|paid|booked|called|"
    r"rang|signed|delivered|shipped|cancelled|canceled|hired|moved|posted|taken care of|ticked off|crossed off|"
    r"(?:is|are|went|it's) (?:now )?(?:live|up|out|in place)|erledigt|fertig|geschickt|abgeschickt|hecho|terminado|"
    r"enviado|fait|terminé|envoyé)\b"
)

# What makes a sentence with a settling word say that it is not settled.
NOT_YET = _compiled(
    r"n't\b|\b(?:not|no|never|nearly|almost|half|partly|should|shall|will|would|could|might|may|must|want|need|have to|"
    r"has to|going to|gonna|plan|hope|try|trying|tomorrow|next|soon|later|if|when|once|until|before|yet|still|nicht|"
    r"noch|werde|muss|todavía|aún|pas|encore)\b|'ll\b"
)

SMALL_TALK = _compiled(
    r"^\W*(?:hey|hi|hello|hallo|hola|bonjour|good (?:morning|evening|afternoon|to (?:see|hear))|"
    r"thanks?|thx|thank you|cheers|merci|gracias|danke|congrats|congratulations|well done|"
    r"way to go|nice (?:one|work|job|to)|great (?:job|work|idea|to hear)|awesome|cool|wow|woah|"
    r"whoa|sure thing|no worries|you'?re welcome|sounds (?:great|good)|sorry to hear|long time|"
    r"bye|see (?:you|ya)|ha+\W|lol|glad|appreciate|check (?:it|this|my|out)|here'?s (?:a|an|the|"
    r"one)\b|take care|let me know|happy (?:for|to))\b|\b(?:can'?t wait|never (?:give up|quit)|"
    r"give up|keep (?:going|it up|on|pushing|moving|at it)|you (?:got|rock)\s*(?:this)?\b|"
    r"we got this|believ(?:e|ing) in|won'?t quit|stay(?:ing)? (?:positive|motivated|strong|"
    r"hopeful|determined|upbeat)|pays? off|worth it|you can do it|(?:mean|means|"
    r"meant) (?:a (?:lot|ton)|so much)|thank(?:s|ful| you)|grateful|really appreciate|"
    r"appreciate (?:it|your|the)|make it (?:work|happen)|pushing (?:on|forward)|whatever comes|"
    r"get(?:s)? me down|chase (?:our|their|your|my) dreams|words? of encouragement|in my corner|"
    r"having my back|here (?:for|to support) you|so (?:excited|stoked|pumped|happy for)|"
    r"your (?:support|help|words|encouragement|store|shop)|(?:let|make) (?:you|me|us|"
    r"everyone) (?:down|proud)|dreams? come true|(?:i|we)'?ll make it\b(?! \w)|(?:going to|gonna|"
    r"will|'ll) (?:make it\b(?! \w)|be (?:so )?(?:great|fun|awesome|amazing))|go for it|stop me|"
    r"plugging away|unforgettable|awesome (?:memories|night)|(?:do|try) my best|hope so|"
    r"going (?:well|great)|up for the challenge|our hearts into|make this work|working hard|"
    r"hard work|resilient|hang in there|tell you about|anyone else would quit|for sure)\b"
)

WITHDRAWS = _compiled(
    r"\b(?:scratch that|strike that|never\s?mind|forget (?:that|what i (?:just )?said|it\b)|"
    r"ignore (?:that|my last)|(?:i|we)(?:'ve)? changed (?:my|our) minds?|on second thoughts?|"
    r"i take that back|vergiss das|olv[íi]dalo)\b"
)

ASKS = _compiled(
    r"\b(?:should|shall|could|can|do|does|did|is|are|will|would|what|which|how|when|where|who|why|"
    r"any|need|was|wie|wann|welche\w*|qué|cómo|comment|quand)\b"
)

CHITCHAT_QUESTION = _compiled(
    r"\b(?:how are|how'?s it|what'?s (?:up|new)|how have|how about you|what about you|"
    r"what'?s your|your fave|you ever|gave you|made you|who do|really|how'?re you|what dance|"
    r"have you|what did you)\b"
)

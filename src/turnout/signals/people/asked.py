# ruff: noqa: RUF001
"""What kind of work a user asks for: to look only, or to change something too."""

import re

from turnout.conversation import Conversation
from turnout.signals.calls.harnesses import EDITORS, SHELL_TOOLS
from turnout.signals.calls.tools import tool_kind

LOOKED_AT = 1_000
"""Characters at the beginning of a request that are looked at."""

_LEAVE = re.compile(
    r"\b(?:do not|don'?t|never|without) (?:change|changing|modify|modifying|edit|editing|touch|touching|alter|write"
    r"|fix|make|making)"
    r"(?: any)?(?: (?:of )?(?:the|your|my))? ?(?:anything|any|code|files?|changes|modifications|edits|it|source)?"
    r"|\bread[- ]only\b|\bno (?:code |file )?(?:changes|edits|modifications)\b"
    r"|\b(?:nichts|keine dateien?|den code nicht) (?:ändern|verändern|anfassen|bearbeiten)"
    r"|\bohne (?:etwas )?(?:zu ändern|änderungen)"
    r"|\bne (?:modifie|change|touche)\w* (?:rien|pas)|\bsans rien (?:modifier|changer)"
    r"|\bno (?:modifiques|cambies|toques|edites)\b|\bsin (?:modificar|cambiar)|\b(?:não|nao) (?:modifique|altere|mude)\b"
    r"|\bnon (?:modificare|cambiare|toccare)\b|\bничего не (?:меняй|изменяй|трогай)|不要(?:修改|改动|更改)|変更し(?:ない|ないで)",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"\A\W*(?:(?:hi|hello|hey|ok|okay|thanks|thank you|please|pls|now|so|and|then|first|next|can you|could you"
    r"|would you|i want you to"
    r"|i'd like you to|i need you to|help me|let'?s|just|briefly|bitte|kannst du|s'il te plaît|peux-tu|por favor"
    r"|puedes|per favore|puoi"
    r"|пожалуйста|请|請)[\s,.!:]*)*",
    re.IGNORECASE,
)
_LOOKS = re.compile(
    r"(?:explain|describe|summari[sz]e|what|what's|why|how|where|which|who|when|is|are|does|do|did|list|show|tell|review|analy[sz]e|audit"
    r"|investigate|explore|look|read|compare|check|trace|understand|research|find|search|assess|evaluate|inspect|give me|walk me"
    r"|erkläre?|erklär|beschreibe?|was|warum|wie|wo|welche\w*|zeige?|analysiere|prüfe|vergleiche|fasse"
    r"|explique\w*|décris|résume|pourquoi|comment|quel\w*|où|montre|analyse"
    r"|explica\w*|describe|resume|qué|que|por qué|cómo|como|dónde|cuál|muestra|analiza|revisa|explique|descreva|por que|mostre"
    r"|spiega\w*|descrivi|perché|come|dove|quale|mostra|analizza|объясни\w*|опиши|почему|как|где|что|покажи|проанализируй)\b"
    r"|(?:解释|解釋|说明|說明|描述|为什么|為什麼|什么|什麼|如何|怎么|哪|分析|总结|查看|説明|なぜ|どう|何|設明)",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"\b(?:fix\w*|chang\w+|implement\w*|add\w*|creat\w+|writ\w+|updat\w+|refactor\w*|remov\w+|delet\w+|renam\w+|migrat\w+|mak(?:e|ing)"
    r"|build|install\w*|upgrad\w+|convert\w*|replac\w+|mov(?:e|ing)|edit\w*|modif\w+|improv\w+|optimi[sz]\w+|deploy\w*|commit|push|port"
    r"|set up|setup|configur\w+|resolv\w+|solv\w+|apply|correct|rewrite|clean ?up|generate|run|merge|book|cancel"
    r"|repariere?|behebe?"
    r"|ändere?|implementiere|füge|erstelle|schreibe?|aktualisiere|entferne|lösche|baue|corrig\w+|répare|modifie\w*|ajoute\w*|crée\w*"
    r"|écris|supprime\w*|arregla\w*|cambia\w*|añade\w*|agrega\w*|crea\w*|escribe|actualiza\w*|elimina\w*|adicion\w+|escreva|conserte"
    r"|aggiung\w+|scrivi|correggi|rimuovi|исправ\w+|добав\w+|созда\w+|измени\w*|напиши\w*|удали\w*|реализуй\w*)\b"
    r"|(?:修复|修復|添加|增加|实现|實現|创建|創建|修改|更新|删除|刪除|重构|重構|写|編寫|修正|追加|作成|実装|変更|削除)",
    re.IGNORECASE,
)


def asks_to_look(said: str) -> bool:
    """Whether a request asks to look, explain or review, and for no change."""
    text = said[:LOOKED_AT].replace("\u2019", "'")
    if _LEAVE.search(text):
        return True
    opening = _OPENING.match(text)
    return _LOOKS.match(text, opening.end() if opening else 0) is not None and _CHANGES.search(text) is None


def only_looks(conversation: Conversation) -> bool:
    """Whether the agent has tools, and none of them could change anything."""
    names = [(tool.name, tool.namespace) for tool in conversation.tools]
    return bool(names) and all(_looks(name, namespace) for name, namespace in names)


def _looks(name: str, namespace: str | None) -> bool:
    bare = name.lower()
    if bare in SHELL_TOOLS or bare in EDITORS:
        return False
    return tool_kind(bare, f"{namespace}__{name}" if namespace else name, name)[0] in ("read", "search", "plan")

# ruff: noqa: RUF001
"""Users who say that what was done is still wrong, in the main languages."""

import re

LOOKED_AT = 800
"""Characters at the beginning of what the user said in which a complaint is looked for."""

_BAD = r"(?:errors?|issues?|problems?|bugs?|fail\w*|exceptions?|crash\w*|warnings?|tracebacks?|same)"

COMPLAINTS: dict[str, tuple[str, ...]] = {
    "English": (
        r"\bstill (?:not|isn'?t|is not|doesn'?t|does not|don'?t|do not|won'?t|can'?t|cannot|didn'?t|fail\w*|broken|wrong"
        r"|incorrect|crash\w*|red|happen\w*|hangs?|hanging|missing|stuck|throw\w*|unresolved|there)\b",
        rf"\bstill (?:get|getting|see|seeing|have|having|show\w*|gives?|giving|got|produc\w+|return\w*|the|an?)\b"
        rf".{{0,60}}\b{_BAD}\b",
        r"\b(?:it|that|this|which|fix|change|patch)(?: still)? (?:did ?n[o']?t|does ?n[o']?t|has ?n[o']?t|hadn'?t|is ?n[o']?t)"
        r"(?: really| actually| even)? (?:work\w*|fix\w*|help\w*|solve\w*|resolv\w*|change\w* anything|right|correct)\b",
        r"\bnot (?:fixed|working|solved|resolved)\b",
        r"\b(?:the |exact(?:ly)? (?:the )?|get(?:ting)? the )?same (?:exact )?"
        r"(?:error|issue|problem|failure|bug|exception|traceback|wrong)\b",
        r"\b(?:nothing (?:has )?changed|no change at all|no luck|no improvement|makes? no difference|made no difference)\b",
        r"\b(?:that|this|it)(?:'s| is) (?:still )?(?:wrong|incorrect|not (?:right|correct|what i (?:asked|meant|wanted)))\b",
        r"\byou (?:broke|have ?n[o']?t fixed|did ?n[o']?t fix|keep (?:making|breaking))\b",
        r"\b(?:error|problem|issue|bug|failure)s? (?:still )?(?:persists?|remains?|is back|came back|comes back)\b",
        r"\b(?:fails?|failing|broken|crash(?:es|ing)?|wrong) again\b",
    ),
    "German": (
        r"\b(?:geht|funktioniert|klappt|läuft|stimmt)\w*(?: es| das)?(?: immer noch| noch immer| leider| weiterhin"
        r"| auch| so)* nicht\b",
        r"\b(?:immer noch|noch immer|weiterhin|nach wie vor)\b.{0,40}\b(?:nicht|fehler\w*|kaputt|falsch|rot|fehl\w*|schief)\b",
        r"\b(?:der|die|das)?(?: ?gleiche[rns]?|selbe[rn]?) (?:fehler|problem)\b",
        r"\bhat (?:leider )?nichts? (?:funktioniert|geholfen|gebracht|geändert)\b",
    ),
    "French": (
        r"\b(?:marche|fonctionne|passe|compile)(?:nt)?(?: toujours| encore)? (?:pas|plus)\b",
        r"\btoujours (?:pas|la même|le même|cassé\w*|en erreur|des erreurs|une erreur|faux|en échec)\b",
        r"\b(?:la |le )?même (?:erreur|problème)\b",
    ),
    "Spanish": (
        r"\b(?:sigue|siguen|continúa|continua)n? (?:sin|fallando|dando|igual|mal|rot[oa]|con (?:el|errores))\b",
        r"\b(?:todavía|todavia|aún|aun) no (?:funciona|va|pasa|compila|está)\w*",
        r"\bno (?:funciona|funcionó|funciono|sirve|sirvió)\b",
        r"\b(?:el )?mismo (?:error|problema|fallo)\b",
    ),
    "Portuguese": (
        r"\b(?:ainda|continua) (?:não|nao|com|falhando|dando|quebrad[oa]|errad[oa])\b",
        r"\b(?:não|nao) (?:funciona|funcionou|resolveu|deu certo)\b",
        r"\b(?:o )?mesmo (?:erro|problema)\b",
    ),
    "Italian": (
        r"\bancora (?:non|lo stesso|errori|rott[oa]|sbagliat[oa])\b",
        r"\bnon (?:funziona|ha funzionato|va ancora|è risolto)\b",
        r"\b(?:lo )?stesso (?:errore|problema)\b",
    ),
    "Dutch": (
        r"\b(?:werkt|lukt|klopt)(?: nog steeds| nog altijd| nog)? niet\b",
        r"\bnog (?:steeds|altijd)\b.{0,30}\b(?:niet|kapot|fout\w*|dezelfde)\b",
        r"\b(?:de|het)?zelfde (?:fout|probleem)\b",
    ),
    "Scandinavian": (
        r"\b(?:fungerar|virker|funker|fungerer)(?: fortfarande| stadig| fortsatt| enda)* (?:inte|ikke)\b",
        r"\b(?:fortfarande|stadigvæk|stadig|fortsatt)\b.{0,30}\b(?:inte|ikke|fel|feil|fejl)\b",
    ),
    "Polish": (
        r"\b(?:nadal|wciąż|dalej|ciągle)\b.{0,30}\b(?:nie|błąd|błędy|ten sam)\b",
        r"\bnie (?:działa|zadziałało|pomogło)\b",
        r"\bten sam (?:błąd|problem)\b",
    ),
    "Russian": (
        r"(?:вс[её][ -]?(?:ещ[её]|равно)|по-прежнему|опять|снова).{0,40}(?:\bне\b|ошибк|пада|слома|не работ)",
        r"\bне (?:работает|заработал\w*|помогло|исправлен\w*|исправил\w*)\b",
        r"\b(?:та же|такая же) (?:самая )?(?:ошибка|проблема)",
    ),
    "Turkish": (
        r"\b(?:hala|hâlâ|halen)\b.{0,40}(?:çalışmıyor|hata|olmadı|bozuk|aynı)",
        r"\baynı hata\b",
        r"\bçalışmıyor\b",
    ),
    "Vietnamese": (r"\bvẫn (?:không|chưa|lỗi|bị|còn)\b",),
    "Indonesian": (r"\bmasih (?:error|gagal|tidak|belum|salah|rusak)\b",),
    "Chinese": (
        r"(?:还是|仍然|仍|依然|依旧|還是|還)(?:不行|不对|不對|报错|報錯|失败|失敗|有问题|有問題|没有?(?:修复|解决|好|用)|出错|不能|错)",
        r"(?:没|没有|沒有)(?:修好|解决|解決|效果|起作用|用)",
        r"(?:同样|同樣|一样|一樣|相同)的?(?:错误|錯誤|问题|問題|报错)",
    ),
    "Japanese": (
        r"(?:まだ|依然|やはり|相変わらず|やっぱり).{0,20}(?:動か|動き|動作し|直っ|直ら|エラー|失敗|ダメ|だめ|駄目|でき(?:な|ま))",
        r"直って(?:い)?(?:ない|ません)",
        r"同じ(?:エラー|問題|失敗)",
    ),
    "Korean": (
        r"(?:여전히|아직도|아직|계속).{0,20}(?:안 |안돼|오류|에러|실패|않)",
        r"(?:같은|똑같은) (?:오류|에러|문제)",
    ),
    "Arabic": (r"(?:لا يزال|ما زال|ما زالت|لا تزال).{0,30}(?:خطأ|لا|يفشل|مشكلة)", r"(?:لا يعمل|لم ينجح|نفس الخطأ)"),
    "Hindi": (r"(?:अभी भी|अब भी).{0,30}(?:नहीं|त्रुटि|एरर|गलत|error)", r"(?:वही|वहीं) (?:त्रुटि|एरर|error)"),
}
"""What users say when a failure persists, by language. Add a language: one row."""

_COMPLAINT = re.compile("|".join(p for of in COMPLAINTS.values() for p in of), re.IGNORECASE)
_SENTENCE = re.compile(r"[^.!?\n。！？]+[.!?。！？]*")
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|whether|unless|until|in case|even though|so that|make sure|wenn|falls|ob|damit|si|se|cuando|quando"
    r"|als|jeśli|если|когда)\b[^,;:]*\Z|(?:如果|若|もし|만약)[^,，、]*\Z",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"\A\W*(?:is|are|does|do|did|has|have|was|were|can|could|will|would|should|why (?:is|are|does|do|did))\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|^>.*$|\"[^\"\n]{20,}\"", re.DOTALL | re.MULTILINE)


def complains(said: str) -> bool:
    """Whether a user who `said` this reports that a failure persists. Conditions, questions and quotations are no reports."""
    text = _QUOTED.sub(" ", said[: 2 * LOOKED_AT].replace("\u2019", "'"))[:LOOKED_AT]
    for sentence in _SENTENCE.findall(text):
        found = _COMPLAINT.search(sentence)
        if found is None or _CONDITION.search(sentence[: found.start()]):
            continue
        if (
            sentence.rstrip().endswith(("?", "\uff1f"))
            and _ASKS.match(sentence)
            and not sentence.lstrip().lower().startswith("why")
        ):
            continue
        return True
    return False

"""The language of a text, where it is plain."""

from __future__ import annotations

import pytest

from memberintel.lib.language import differ, language

TEXTS = {
    "en": "We decided to run a discount campaign for the yearly plan, and I will write to the members by Friday.",
    "de": "Wir haben beschlossen, eine Rabattaktion für das Jahresabo zu machen, und ich schreibe den Mitgliedern"
    " bis Freitag. Das ist nicht viel, aber es ist ein Anfang.",
    "fr": "Nous avons décidé de faire une promotion pour les abonnés, et je vais écrire aux membres avant vendredi.",
    "es": "Hemos decidido hacer una campaña de descuento para el plan anual, y voy a escribir a los miembros.",
    "it": "Abbiamo deciso di fare una campagna di sconti per il piano annuale, e scrivo ai membri della comunità.",
    "pt": "Decidimos fazer uma campanha de descontos para o plano anual, e eu vou escrever aos membros da comunidade.",
    "nl": "We hebben besloten om een kortingsactie te doen voor het jaarplan, en ik schrijf de leden voor vrijdag.",
    "Cyrillic": "Мы решили провести акцию со скидкой на годовой план, и я напишу участникам до пятницы.",
    "Japanese": "年間プランの割引キャンペーンを実施することに決めました。金曜日までに会員にメールを書きます。",
    "Han": "我们决定对年度计划进行折扣活动，我会在星期五之前给会员们写邮件。",
    "Arabic": "قررنا إطلاق حملة خصم على الخطة السنوية وسأكتب إلى الأعضاء قبل يوم الجمعة.",
}


@pytest.mark.parametrize("code", TEXTS)
def test_it_is_told_by_script_or_small_words(code: str) -> None:
    assert language(TEXTS[code]) == code


@pytest.mark.parametrize(
    "text", ["", "  ", "OK", "49 €, 412", "Discount campaign, yearly plan, e-mail, Friday", "x" * 90]
)
def test_what_is_not_plain_is_left_undecided(text: str) -> None:
    assert language(text) == ""


def test_two_texts_differ_only_where_both_are_plain() -> None:
    assert differ(TEXTS["de"], TEXTS["en"])
    assert differ(TEXTS["Japanese"], TEXTS["Han"])
    assert not differ(TEXTS["de"], TEXTS["de"][:90])
    assert not differ(TEXTS["de"], "Rabatt, Jahresplan")

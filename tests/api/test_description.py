"""The OpenAPI document: what is committed is what the code says, and it is one."""

from __future__ import annotations

import re

import yaml
from django.test import Client
from drf_spectacular.renderers import OpenApiYamlRenderer
from drf_spectacular.validation import validate_schema

from memberintel.api import document
from tests.api.calls import BODIES, calls
from tests.services import ROOT

COMMITTED = ROOT / "docs" / "openapi.yaml"


def test_what_is_committed_is_what_the_code_says() -> None:
    made = OpenApiYamlRenderer().render(document(), renderer_context={})  # type: ignore[no-untyped-call]
    assert COMMITTED.read_bytes() == made, "run `make openapi` and commit docs/openapi.yaml"


def test_it_is_openapi_3_1() -> None:
    committed = yaml.safe_load(COMMITTED.read_text())
    assert committed["openapi"].startswith("3.1.")
    validate_schema(committed)  # type: ignore[no-untyped-call]


def test_every_call_is_in_it_with_a_readable_name_and_its_errors() -> None:
    described = {
        (operation["operationId"], method.upper(), len(path.split("{")) > 1): operation
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    }
    assert len(described) == len(calls())
    for (name, method, by_id), operation in described.items():
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", name)
        assert operation["summary"]
        assert operation["tags"]
        refused = {"401", "403", "429", "500", "503"} | ({"404"} if by_id else set())
        if "requestBody" in operation:
            assert method != "GET"
            refused |= {"400", "413", "415"}
        assert refused <= operation["responses"].keys(), name
        for status, response in operation["responses"].items():
            if status.startswith(("4", "5")):
                assert list(response["content"]) == ["application/problem+json"]


def test_bodies_are_described_where_they_are_read() -> None:
    with_body = [operation for methods in document()["paths"].values() for operation in methods.values()]
    assert sum("requestBody" in operation for operation in with_body) == len(
        [1 for body in BODIES.values() if body]
    )


def test_it_is_open_to_all() -> None:
    response = Client().get("/api/openapi.json")
    assert response.status_code == 200
    assert response.json()["info"]["title"] == "MemberIntel"


def test_its_page_has_no_inline_script_and_keeps_the_policy() -> None:
    response = Client().get("/api/docs/")
    page = response.content.decode()
    assert "<script>" not in page
    assert "<style" not in page
    assert " style=" not in page
    assert "http" not in re.sub(r'lang="en"', "", page)
    assert "unsafe" not in response["Content-Security-Policy"]

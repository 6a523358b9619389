from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
import requests

from advisor.outlets.contract import DeploymentJson, Document
from advisor.outlets.document import document
from advisor.outlets.history import restore_history
from advisor.web.state import Health
from tests.unit.outlets import samples
from tests.unit.web.fleets import HOSTILE_NAMES, Known, fleet, hostile_fleet, records, served


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served(Known()) as url:
        yield url


@pytest.fixture(scope="module")
def hostile() -> Iterator[str]:
    past = [record for name in HOSTILE_NAMES for record in records(name)]
    with served(Known(hostile_fleet(), past_records=past)) as url:
        yield url


def get(url: str) -> requests.Response:
    return requests.get(url, timeout=10, allow_redirects=False)


def links(page: str) -> list[str]:
    return re.findall(r'<a [^>]*href="([^"#]+)', page)


@pytest.mark.parametrize("server", ["url", "hostile"])
def test_every_link_leads_to_a_page(server: str, request: pytest.FixtureRequest) -> None:
    root = request.getfixturevalue(server)
    seen: set[str] = set()
    ahead = ["/"]
    while ahead:
        path = ahead.pop()
        if path not in seen:
            seen.add(path)
            answer = get(root + path)
            assert answer.status_code == 200, path
            assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
            ahead += links(answer.text)
    # the fleet, the history and the JSON, and a page for each deployment
    assert len(seen) == 3 + len(fleet().deployments if server == "url" else HOSTILE_NAMES)


def test_the_whole_document_is_the_one_of_the_command_line(url: str) -> None:
    answer = get(f"{url}/api/v1/deployments")
    assert answer.headers["content-type"] == "application/json"
    assert Document.model_validate_json(answer.text) == document(fleet())


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_any_name_is_found_percent_encoded(hostile: str, name: str) -> None:
    sent = name.encode("utf-8", "backslashreplace")
    answer = get(f"{hostile}/api/v1/deployments/{quote(sent, safe='')}")
    assert answer.status_code == 200
    assert DeploymentJson.model_validate_json(answer.text).name == sent.decode()


def test_a_slash_in_a_name_needs_no_encoding(hostile: str) -> None:
    assert get(f"{hostile}/api/v1/deployments/acme/llama-3/70b").json()["name"] == "acme/llama-3/70b"
    assert get(f"{hostile}/deployments/acme/llama-3/70b").status_code == 200


def test_advice_comes_with_its_deployment_the_open_one_first(url: str) -> None:
    told = get(f"{url}/api/v1/advice").json()
    chat = [advice for advice in told["advice"] if advice["deployment"] == "chat-70b"]
    assert [(a["knob"], a["state"], a["recommended"]) for a in chat] == [
        ("max_num_seqs", "open", 24),
        ("max_model_len", "queued", 8192),
    ]
    assert told["generated_at"] == "2026-11-29T16:00:00Z"
    assert {a["deployment"] for a in told["advice"]} == {"chat-70b", "chat-new", "code-8b", "vision-90b"}


def test_history_can_be_read_back(url: str) -> None:
    told, tracks = restore_history(get(f"{url}/api/v1/history").text)
    assert told == records()
    assert tracks == Known().track_records()


def test_what_is_not_there_is_a_page_for_people_and_json_for_programs(url: str) -> None:
    page = get(f"{url}/deployments/nobody")
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "No deployment has this name." in page.text
    answer = get(f"{url}/api/v1/deployments/nobody")
    assert answer.status_code == 404
    assert answer.json() == {"detail": "no deployment has this name: /api/v1/deployments lists those there are"}
    assert get(f"{url}/etc/passwd").status_code == 404


def test_before_the_first_evaluation_everything_says_so() -> None:
    with served(Known(None, Health(ready=False, reason="the first evaluation is under way"), past_records=())) as url:
        for path in (
            "/",
            "/deployments/x",
            "/api/v1/deployments",
            "/api/v1/deployments/x",
            "/api/v1/advice",
            "/readyz",
        ):
            answer = get(url + path)
            assert answer.status_code == 503, path
            assert "the first evaluation is under way" in answer.text
        assert get(f"{url}/").headers["retry-after"] == "60"
        assert get(f"{url}/healthz").status_code == 200
        assert get(f"{url}/history").status_code == 200


def test_probes(url: str) -> None:
    assert get(f"{url}/healthz").text == "alive\n"
    assert (get(f"{url}/readyz").status_code, get(f"{url}/readyz").text) == (200, "ready\n")
    answer = get(f"{url}/metrics")
    assert answer.text == "# TYPE advisor_up gauge\nadvisor_up 1.0\n"
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_stale_advice_is_not_ready_and_still_shown() -> None:
    with served(Known(told=Health(ready=False, reason="the last evaluation is 3 h old"))) as url:
        answer = get(f"{url}/readyz")
        assert (answer.status_code, answer.text) == (503, "the last evaluation is 3 h old\n")
        assert "Do not rely on this now" in get(f"{url}/").text
        assert get(f"{url}/api/v1/advice").status_code == 200


def test_the_api_describes_itself_with_the_models_of_the_contract(url: str) -> None:
    paths = get(f"{url}/api/v1/openapi.json").json()["paths"]
    assert set(paths) == {
        "/api/v1/deployments", "/api/v1/deployments/{name}", "/api/v1/trends/{name}", "/api/v1/advice",
        "/api/v1/history",
    }  # fmt: skip
    schema = paths["/api/v1/deployments"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": "#/components/schemas/Document"}
    assert get(f"{url}/docs").status_code == 404


def test_an_empty_fleet_is_an_empty_document() -> None:
    with served(Known(samples.report())) as url:
        assert Document.model_validate_json(get(f"{url}/api/v1/deployments").text) == document(samples.report())

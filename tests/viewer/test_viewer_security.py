"""Who may use the viewer for what: the whole matrix, against a real socket."""

from __future__ import annotations

import os
import re
import socket
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from asking import TOKEN, asked, serving

import holdfast
from holdfast.viewer import ViewerOptions, app

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}
EVERYWHERE = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
STORE = "/api/1/store"
BIG = 16 << 20


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = str(tmp_path_factory.mktemp("security") / "agents.db")
    with holdfast.open(found) as store:
        for number in range(20):
            thread = store.thread(f"t{number}", owner=f"owner-{number}")
            thread.save({"messages": [{"role": "user", "content": f"I am {number}."}]})
    return found


@pytest.fixture(scope="module")
def viewer(path):
    with asked(path, hosts=("viewer.test",), origins=("https://ok.test",)) as found:
        yield found


@pytest.fixture(scope="module")
def writing(path):
    with asked(path, write=True) as found:
        yield found


# --- names and origins ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{port}", 200),
        ("localhost:{port}", 200),
        ("LOCALHOST:{port}", 200),
        ("viewer.test", 200),
        ("127.0.0.1:1", 421),
        ("evil.test", 421),
        ("evil.test:{port}", 421),
        ("127.0.0.1.evil.test:{port}", 421),
        ("localhost.evil.test", 421),
        ("", 421),
        ("169.254.169.254", 421),
    ],
)
def test_only_the_servers_own_names_are_answered(viewer, host, status):
    headers = {"Host": host.format(port=viewer.port)}

    for where in (STORE, "/", "/app.js"):
        assert viewer.send("GET", where, headers).status == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        ("http://127.0.0.1:{port}", 200),
        ("https://ok.test", 200),
        ("http://ok.test", 403),
        ("null", 403),
        ("http://evil.test", 403),
        ("http://127.0.0.1:1", 403),
        ("http://127.0.0.1:{port}.evil.test", 403),
    ],
)
def test_only_the_servers_own_pages_are_answered(viewer, origin, status):
    given = origin and origin.format(port=viewer.port)

    assert viewer.send("GET", STORE, {"Origin": given}).status == status


@pytest.mark.parametrize(
    ("site", "status"),
    [
        (None, 200),
        ("same-origin", 200),
        ("none", 200),
        ("same-site", 403),
        ("cross-site", 403),
        ("anything", 403),
    ],
)
def test_what_a_browser_says_of_another_site_is_refused(viewer, site, status):
    for where in (STORE, "/app.js"):
        assert viewer.send("GET", where, {"Sec-Fetch-Site": site}).status == status


def test_a_link_on_another_site_may_open_the_page_and_nothing_else(viewer):
    visit = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    framed = {**visit, "Sec-Fetch-Dest": "iframe"}

    assert viewer.send("GET", "/?t=t1", visit).status == 200
    assert viewer.send("GET", "/", framed).status == 403
    assert viewer.send("GET", STORE, visit).status == 403


# --- the token ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Basic {TOKEN}",
        TOKEN,
        f"Bearer {TOKEN}, Bearer {TOKEN}",
    ],
)
def test_the_api_needs_the_token(viewer, authorization):
    answered = viewer.send("GET", STORE, {"Authorization": authorization})

    assert (answered.status, answered.code) == (401, "unauthorized")
    assert answered.headers["www-authenticate"] == "Bearer"


def test_the_token_is_taken_from_nothing_but_its_header(viewer):
    other = {"Authorization": None, "Cookie": f"token={TOKEN}"}

    answered = viewer.send("GET", f"{STORE}?token={TOKEN}", other)

    assert answered.status == 401
    assert "set-cookie" not in viewer.send("GET", "/").headers


def test_the_page_needs_no_token_and_holds_nothing_of_the_store(viewer):
    for where in ("/", "/app.js", "/app.css", "/static/app.js"):
        answered = viewer.send("GET", where, {"Authorization": None})

        assert answered.status == 200
        assert b"owner-" not in answered.body


# --- methods and bodies ---------------------------------------------------------------


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_a_viewer_that_only_reads_has_no_route_that_changes(viewer, path, method):
    with holdfast.open(path, read_only=True) as store:
        before = store.changes()

    for route in ("fork", "label", "tag", "rewind", "resolve", "threads"):
        answered = viewer.send(method, f"/api/1/{route}", json={})
        assert answered.status in {404, 405}

    with holdfast.open(path, read_only=True) as store:
        assert store.changes().items == before.items
    assert viewer.get("store")["write"] is False


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form"]
)
def test_a_form_of_another_site_is_no_change(writing, kind):
    answered = writing.send("POST", "/api/1/tag", {"Content-Type": kind}, body=b"{}")

    assert (answered.status, answered.code) == (415, "not_json")


def test_a_large_body_is_refused_however_it_is_announced(writing):
    announced = {"Content-Type": "application/json", "Content-Length": str(BIG + 1)}
    in_chunks = (b" " * (1 << 20) for _ in range(17))

    told = writing.send("POST", "/api/1/tag", announced)
    found = writing.send(
        "POST", "/api/1/tag", {"Content-Type": "application/json"}, body=in_chunks
    )

    assert (told.status, found.status) == (413, 413)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"checkpoint": 1}', b'{"x": 1}'])
def test_a_body_that_is_not_understood_is_refused(writing, body):
    headers = {"Content-Type": "application/json"}

    answered = writing.send("POST", "/api/1/tag", headers, body=body)

    assert (answered.status, answered.code) == (400, "bad_request")


@pytest.mark.parametrize(
    "where",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static/....//app.py",
        "/static//etc/passwd",
        "/static/app.py",
        "/static/",
        "/..%5cagents.db",
        "//agents.db",
        "/templates/page.html",
    ],
)
def test_no_path_leads_out_of_the_page(viewer, where):
    answered = viewer.send("GET", where)

    assert answered.status == 404
    assert b"import " not in answered.body


# --- headers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "where", "headers"),
    [
        ("GET", "/", {}),
        ("HEAD", "/", {}),
        ("GET", "/app.js", {}),
        ("GET", "/app.css", {}),
        ("GET", "/favicon.ico", {}),
        ("GET", "/nothing", {}),
        ("GET", STORE, {}),
        ("GET", "/api/1/thread?thread=nobody", {}),
        ("GET", "/api/1/export?thread=t1", {}),
        ("POST", STORE, {"Content-Type": "application/json"}),
        ("POST", STORE, {}),
        ("GET", STORE, {"Authorization": None}),
        ("GET", STORE, {"Host": "evil.test"}),
        ("GET", STORE, {"Origin": "http://evil.test"}),
        ("GET", STORE, {"Sec-Fetch-Site": "cross-site"}),
        ("GET", STORE, {"Accept-Encoding": "gzip"}),
    ],
)
def test_every_response_has_the_strictest_headers(viewer, method, where, headers):
    found = viewer.send(method, where, headers).headers

    policy = found["content-security-policy"].split("; ")
    assert dict(rule.split(" ", 1) for rule in policy) == POLICY
    assert {name: found[name] for name in EVERYWHERE} == EVERYWHERE
    assert "server" not in found
    assert "access-control-allow-origin" not in found
    if where.startswith("/api/"):
        assert found["cache-control"] == "no-store"


def test_the_page_has_nothing_that_its_policy_forbids(viewer):
    page = viewer.send("GET", "/").body.decode()
    script = viewer.send("GET", "/app.js").body.decode()

    assert not re.search(r"<script(?![^>]* src=)|\bon\w+=|<style|style=", page)
    assert not re.search(r"\.(inner|outer)HTML|insertAdjacentHTML|\beval\(", script)
    assert not re.search(r"https?://(?!www\.w3\.org)", page)


# --- more than one browser ------------------------------------------------------------


def test_a_hundred_clients_get_each_their_own_answers(viewer):
    def ask(number):
        thread = f"t{number % 20}"
        card = viewer.get("thread", thread=thread)
        page = viewer.get("messages", checkpoint=card["head"])
        return card["id"], card["owner"], page["messages"][0]["text"]

    with ThreadPoolExecutor(100) as pool:
        found = list(pool.map(ask, range(100)))

    wanted = [(f"t{n % 20}", f"owner-{n % 20}", f"I am {n % 20}.") for n in range(100)]
    assert found == wanted


def test_of_many_that_rewind_at_once_one_does(tmp_path):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path) as store:
        head = store.thread("case").save({"n": 1})
        store.thread("case").save({"n": 2})
    with asked(path, write=True) as viewer, ThreadPoolExecutor(20) as pool:
        last = viewer.get("thread", thread="case")["head"]

        def rewind(_):
            body = {"thread": "case", "to": head.id, "expect": last}
            return viewer.post("rewind", **body).status

        found = sorted(pool.map(rewind, range(20)))

    assert found == [200, *[409] * 19]


# --- where it listens -----------------------------------------------------------------


def test_a_unix_socket_is_for_its_owner_alone_and_leaves_no_file(path, tmp_path):
    place = str(tmp_path / "viewer.sock")
    with serving(path, socket=place):
        mode = stat.S_IMODE(os.stat(place).st_mode)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(place)
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answered = client.recv(100)

    assert mode == 0o600
    assert answered.startswith(b"HTTP/1.1 200")
    assert not os.path.exists(place)


def test_a_viewer_works_under_a_path_of_a_larger_site(path):
    with asked(path, prefix="/tools/holdfast") as viewer:
        page = viewer.send("GET", "/tools/holdfast/")
        kept = viewer.send("GET", "/tools/holdfast/api/1/store")
        removed = viewer.send("GET", "/api/1/store")
        unlocked = viewer.send("GET", "/tools/holdfast/api/1/store", NO_TOKEN)

    assert b'data-base="/tools/holdfast/"' in page.body
    assert b'src="/tools/holdfast/app.js"' in page.body
    assert (kept.status, removed.status, unlocked.status) == (200, 200, 401)


NO_TOKEN = {"Authorization": None}


def test_a_short_token_is_refused(path):
    with (
        holdfast.open(path, read_only=True) as store,
        pytest.raises(holdfast.errors.Unstorable),
    ):
        app(store, ViewerOptions(token="short"))

"""Addresses: what stands for what, and that nothing that grants access is written."""

from __future__ import annotations

import pytest

import datacollect as dc
from datacollect.exports.formats import EXPORTS
from datacollect.exports.templates import folder_of_host, read_templates

HOSTS = ("S", "K", "a=b")


def test_names_are_encoded_in_urls_and_left_elsewhere():
    given = ["https://{host}.example/{path}", "K=https://k.example/own/{path}"]
    relayed = ["K=https://k.example/relay/{source}/{path}"]
    urls = read_templates(given, relayed, HOSTS, is_url=True)
    assert urls.address("S", "S", "a b/ü?#%") == "https://S.example/a%20b/%C3%BC%3F%23%25"
    assert urls.address("K", "K", "x") == "https://k.example/own/x"
    assert urls.address("K", "S", "{host}") == "https://k.example/relay/S/%7Bhost%7D"
    paths = read_templates(["/data/{source}/{path}"], [], HOSTS, is_url=False)
    assert paths.address("S", "S", "a b {host}") == "/data/S/a b {host}"


def test_xrootd_takes_names_as_they_are():
    found = read_templates(["root://{host}//{path}", "K=HTTPS://k/{path}"], [], HOSTS, is_url=True)
    assert found.address("S", "S", "a b/%20?") == "root://S//a b/%20?"
    assert found.address("K", "K", "a b") == "HTTPS://k/a%20b"


def test_an_equals_sign_may_belong_to_the_address():
    found = read_templates(
        ["https://x/?file={path}", "a=https://y/{path}"], [], ("a",), is_url=True
    )
    assert found.address("a", "a", "p") == "https://y/p"
    assert found.address("b", "b", "p") == "https://x/?file=p"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("https://me:secret@x/{path}", "a password may not stand in an address"),
        ("rsync://me:secret@x/{path}", "a password may not stand"),
        ("https://x/{path}?X-Amz-Signature=1", "'X-Amz-Signature' .* may grant access"),
        ("https://x/{path}?access_token=1", "may grant access"),
        ("https://x/{path}?authz=Bearer%20x", "'authz' .* may grant access"),
        ("https://x/{path}?key=AIza", "'key' .* may grant access"),
        ("https://x/{path}?sv=1&sig=x", "'sig' .* may grant access"),
        (":s3,secret_access_key=x:bucket/{path}", "'secret_access_key' .* may grant access"),
        (":sftp,host=h,pass=x:/data/{path}", "'pass' .* may grant access"),
        ("https://x/data", "must be an address with {path}"),
        ("https://x/{path}/{user}", "must be an address with {path}"),
        ("https://x/\n{path}", "must be an address"),
    ],
)
def test_what_is_refused(template, message):
    with pytest.raises(dc.ProblemError, match=message):
        read_templates([template], [], HOSTS, is_url=True)
    with pytest.raises(dc.ProblemError, match=f"--relay-url.*{message}"):
        read_templates([], [template], HOSTS, is_url=True)


def test_presigned_addresses_are_led_to_where_they_work():
    with pytest.raises(dc.ProblemError, match=r"datacollect pull, whose collection file .*: urls"):
        read_templates(["https://x/{path}?X-Amz-Signature=1"], [], HOSTS, is_url=True)


def test_what_is_missing_is_said():
    found = read_templates(["S=https://s/{path}", "K=https://k/{path}"], [], HOSTS, is_url=True)
    with pytest.raises(dc.ProblemError, match="no address is known for what 'X' serves"):
        found.address("X", "X", "p")
    with pytest.raises(dc.ProblemError, match=r"'K' forwards data of 'S', .* --relay-url 'K="):
        found.address("K", "S", "p")
    with pytest.raises(dc.ProblemError, match="two templates for all hosts"):
        read_templates(["https://s/{path}", "https://k/{path}"], [], HOSTS, is_url=True)


def test_words_that_only_resemble_secrets_are_no_secrets():
    for template in ("https://x/?keyring={path}", "https://x/?author=me&file={path}"):
        assert read_templates([template], [], HOSTS, is_url=True).address("S", "S", "p")


@pytest.mark.parametrize("name", ["..", "a/b", "-x", "%2F", "a\nb", "\\", ".hidden", "zürich"])
def test_folders_of_hosts_are_single_names_that_differ(name):
    from urllib.parse import unquote

    folder = folder_of_host(name)
    assert "/" not in folder
    assert folder[0] not in "-."
    assert folder.isprintable()
    assert unquote(folder) == name


@pytest.mark.parametrize(
    ("kind", "example", "keeper"),
    [
        (
            "curl",
            "https://{host}.example/{path}",
            "~/.netrc, or the file that DATACOLLECT_CURL_OPTIONS",
        ),
        (
            "aria2",
            "https://{host}.example/{path}",
            "~/.netrc, or the file that DATACOLLECT_ARIA2_CONF",
        ),
        ("rclone", "{host}:{path}", "rclone config"),
        ("rsync", "{host}:/data/{path}", "~/.ssh/config"),
        ("fts", "root://{host}.example//{path}", "proxy certificate"),
    ],
)
def test_messages_are_those_of_the_format(kind, example, keeper):
    its = EXPORTS.get(kind)
    said = {"is_url": its.is_url, "example": its.example, "keeper": its.keeper}
    found = read_templates([], [], HOSTS, **said)
    with pytest.raises(dc.ProblemError) as missing:
        found.address("S", "S", "x")
    assert repr(example) in str(missing.value)
    with pytest.raises(dc.ProblemError) as secret:
        read_templates(["https://me:pw@h/{path}"], [], HOSTS, **said)
    assert keeper in str(secret.value)
    others = [".netrc", "rclone config", "~/.ssh", "proxy certificate"]
    assert [word for word in others if word in str(secret.value)] == (
        [word for word in others if word in keeper]
    )

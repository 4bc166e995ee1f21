"""Entries of other servers, and those refused, without telling secrets."""

import pytest

import datacollect as dc
from datacollect.transfer.pull.config.file import Collection


def collection(entry, **more):
    return {
        "format": "datacollect-collection/1",
        "destination": "D",
        "key": "k",
        "servers": {"W": entry},
    } | more


URL = "https://x.example/data/"


def test_paths_lie_below_the_url():
    tree = collection({"url": "https://X.example:8443/data?v=2", "paths": ["a b", "c/d#"]})
    server = Collection.from_dict(tree).entries["servers"]["W"]
    assert server.origin == ("https", "x.example", 8443)
    assert [file.target.path for file in server.files] == ["/data/a%20b?v=2", "/data/c/d%23?v=2"]


def test_urls_are_called_by_their_last_part_or_as_the_file_says(tmp_path):
    (tmp_path / "urls.csv").write_text(
        "url,path,bytes,sha256\n"
        f"https://x.example/b/a%20b.tar?X-Amz-Signature=1,,,\n"
        f"https://x.example/b/c?X-Amz-Signature=1,run/c.tar,5,{'AB' * 32}\n"
    )
    found = Collection.from_dict(collection({"urls": "urls.csv"}), tmp_path)
    server = found.entries["servers"]["W"]
    found = [(file.path, file.n_bytes, file.sha256) for file in server.files]
    assert found == [("a b.tar", None, None), ("run/c.tar", 5, "ab" * 32)]
    assert [file.is_known for file in server.files] == [False, True]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"url": URL}, "one of manifest, paths and urls"),
        ({"url": URL, "paths": ["a"], "urls": "u.csv"}, "got paths and urls"),
        ({"paths": ["a"]}, "must have url"),
        ({"url": URL, "urls": "u.csv"}, "must not have url"),
        ({"url": "ftp://x.example/", "paths": ["a"]}, "servers.W.url: must be https"),
        ({"url": "https://", "paths": ["a"]}, "servers.W.url: must be https"),
        ({"url": "https://x.example:99999/", "paths": ["a"]}, "servers.W.url: must be https"),
        ({"url": "http://x.example/", "paths": ["a"]}, "plain_http = true"),
        ({"url": URL, "paths": ["a"], "fingerprint": "sha256:ab"}, "64 lowercase"),
        (
            {"url": URL, "paths": ["a"], "fingerprint": "sha256:" + "0" * 64, "ca": "c"},
            "leave one out",
        ),
        (
            {"url": "http://x.example/", "plain_http": True, "ca": "c", "paths": ["a"]},
            "must not have ca",
        ),
        (
            {"url": "http://me:pw@x.example/", "plain_http": True, "paths": ["a"]},
            "which anybody could read",
        ),
        ({"url": URL, "paths": ["../a"]}, "holds '..'"),
        ({"url": URL, "paths": ["a", "a"]}, "given twice, also at servers.W.paths"),
        ({"url": URL, "paths": []}, "paths must be a list"),
        ({"url": URL, "manifest": "none.csv"}, "none.csv: no such file"),
        ({"url": URL, "paths": ["a"], "plain_http": "yes"}, "must be true or false"),
        ({"url": URL, "path": ["a"]}, "did you mean 'paths'"),
    ],
)
def test_what_is_refused(entry, words, tmp_path):
    with pytest.raises(dc.ProblemError) as caught:
        Collection.from_dict(collection(entry), tmp_path)
    assert words in str(caught.value), caught.value
    assert "me:pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: must be a header"),
        ("https://x.example/a?Signature=s3cret\n", "line 1: must be a header"),
        ("url\nhttps://x.example/\n", "holds an empty part"),
        ("url\nx.example/a?Signature=s3cret\n", "line 2: url: must be https"),
        ("url\nhttps://x.example/a?s3cret\nhttps://y.example/b?s3cret\n", "one server"),
        ("url\nhttps://x.example/a?s3cret\nhttps://x.example/a?s3cret\n", "given twice"),
        ("url,bytes\nhttps://x.example/a?s3cret,many\n", "bytes must be a whole number"),
        ("url,sha256\nhttps://x.example/a?s3cret,abc\n", "64 hexadecimal"),
        ("url,path\nhttps://x.example/a?s3cret\n", "must have 2 fields like the header, got 1"),
        ('url\n"https://x.example/a?s3cret\n', "line 2: not a CSV file: unexpected end of data"),
        ("https://x.example/s3cret,https://x.example/s3cret\n", "line 1: a column given twice"),
        ("url,\nhttps://x.example/a,https://x.example/b?s3cret\n", "line 2 has something in it"),
        ("url\nhttps://x.example/a?s3cret,\n", "line 2: must have 1 fields like the header, got 2"),
        ("url\n", "it has no files"),
    ],
)
def test_files_of_urls_that_are_refused_tell_no_secrets(tmp_path, text, words):
    (tmp_path / "urls.csv").write_text(text)
    with pytest.raises(dc.ProblemError) as caught:
        Collection.from_dict(collection({"urls": "urls.csv"}), tmp_path)
    assert words in str(caught.value), caught.value
    assert "s3cret" not in str(caught.value)


def test_a_manifest_must_name_the_server(tmp_path):
    (tmp_path / "files.csv").write_text("host,path,bytes\nV,a,1\n")
    entry = {"url": URL, "manifest": "files.csv"}
    with pytest.raises(dc.ProblemError, match="no files of 'W'"):
        Collection.from_dict(collection(entry), tmp_path)


def test_names_of_hosts_are_distinct():
    agents = {"w": {"url": "https://x.example:7443", "ca": "ca.pem"}}
    with pytest.raises(dc.ProblemError, match="'w' is another host's name"):
        Collection.from_dict(collection({"url": URL, "paths": ["a"]}, agents=agents))

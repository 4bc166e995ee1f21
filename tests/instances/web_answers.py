"""Answers of web servers as they should be, and what collections say of their files."""

import hashlib


def paths_of(tiny):
    return {"url": tiny.url, "paths": sorted(tiny.files)}


def manifest(tmp_path, files, *, hashed=True):
    rows = [
        f"W,{path},{len(data)},{hashlib.sha256(data).hexdigest() if hashed else ''}"
        for path, data in files.items()
    ]
    (tmp_path / "files.csv").write_text("\n".join(["host,path,bytes,sha256", *rows, ""]))
    return str(tmp_path / "files.csv")


def whys(answer):
    return {missing.path: missing.why for missing in answer.missing}


def ranged(data, headers, etag='"v1"', **more):
    """Answer as a server should."""
    if "Range" not in headers:
        return 200, {"ETag": etag} | more, data
    first, last = map(int, headers["Range"].removeprefix("bytes=").split("-"))
    last = min(last, len(data) - 1)
    content_range = {"Content-Range": f"bytes {first}-{last}/{len(data)}"}
    return 206, content_range | {"ETag": etag} | more, data[first : last + 1]

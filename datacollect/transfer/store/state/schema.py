"""Schema of a state."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import apsw

VERSION = 3

# Times are two integers, seconds and the nanoseconds beyond: SQLite's have 64 bits.
# placed_*: size and time of a file when it got its name: it is ours, and unaltered, as long as it
# has them. set_mode: the bits that it got. is_gone: done, and not listed by its source any more.
# A part of a file has come where `hashes` has its hash; `pieces` only says how files are cut, and
# which pieces have ever come.
_FILES = """
CREATE TABLE files (
    id INTEGER PRIMARY KEY, source INTEGER NOT NULL, path TEXT NOT NULL, bytes INTEGER NOT NULL,
    mtime_s INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL, tag TEXT,
    sha256 TEXT, mode INTEGER, extents TEXT, data_bytes INTEGER NOT NULL,
    offset INTEGER, state INTEGER NOT NULL DEFAULT 0, why TEXT,
    placed_bytes INTEGER, placed_s INTEGER, placed_ns INTEGER, set_mode INTEGER,
    is_gone INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX files_by_path ON files (source, path);
"""
_REST = """
CREATE TABLE left_out (
    source INTEGER NOT NULL, path TEXT NOT NULL, why TEXT NOT NULL, path_hex TEXT
);
CREATE TABLE folders (
    source INTEGER NOT NULL, path TEXT NOT NULL, mode INTEGER, mtime_s INTEGER, mtime_ns INTEGER,
    why TEXT, PRIMARY KEY (source, path)
) WITHOUT ROWID;
CREATE TABLE hashes (
    file INTEGER NOT NULL, offset INTEGER NOT NULL, bytes INTEGER NOT NULL, hash BLOB NOT NULL,
    PRIMARY KEY (file, offset)
) WITHOUT ROWID;
"""
# looks: what an unfinished file looked like when all that is recorded of it was known to be there.
_UNFINISHED = "CREATE TABLE unfinished (file INTEGER PRIMARY KEY, looks TEXT NOT NULL);"

# is_listed: all that the collection wants of it was listed to its end, in the last start that asked
# for all of it; wants: what that was. is_viewed: what the last start asked for was.
_NEW = f"""
CREATE TABLE facts (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE sources (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, is_wanted INTEGER NOT NULL DEFAULT 0,
    is_listed INTEGER NOT NULL DEFAULT 0, why TEXT,
    is_viewed INTEGER NOT NULL DEFAULT 0, wants TEXT
);
{_FILES}
CREATE TABLE pieces (
    source INTEGER NOT NULL, piece INTEGER NOT NULL, offset INTEGER NOT NULL,
    bytes INTEGER NOT NULL, hash BLOB, PRIMARY KEY (source, piece)
) WITHOUT ROWID;
CREATE TABLE rates (
    hosts TEXT PRIMARY KEY, bytes_per_s REAL NOT NULL, at_unix_s REAL NOT NULL
) WITHOUT ROWID;
{_REST}
{_UNFINISHED}
INSERT INTO facts VALUES ('version', {VERSION});
"""

# What a listing says until it has come to its end.
LISTED = """
CREATE TEMP TABLE listed (
    source INTEGER NOT NULL, path TEXT NOT NULL, bytes INTEGER NOT NULL,
    mtime_s INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL, tag TEXT,
    sha256 TEXT, mode INTEGER, extents TEXT, data_bytes INTEGER NOT NULL,
    PRIMARY KEY (source, path)
) WITHOUT ROWID;
CREATE TEMP TABLE listed_out (
    source INTEGER NOT NULL, path TEXT NOT NULL, why TEXT NOT NULL, path_hex TEXT,
    is_kept INTEGER NOT NULL
);
CREATE TEMP TABLE out_of_view (kind TEXT NOT NULL, what NOT NULL, PRIMARY KEY (kind, what));
CREATE TEMP TABLE listed_folders (
    source INTEGER NOT NULL, path TEXT NOT NULL, mode INTEGER, mtime_s INTEGER, mtime_ns INTEGER,
    PRIMARY KEY (source, path)
) WITHOUT ROWID;
"""


def version_of(db: apsw.Connection) -> object:
    """Return the version of an open state; None: there are no tables in it."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'facts'").fetchall():
        return None
    rows = db.execute("SELECT value FROM facts WHERE key = 'version'").fetchall()
    return rows[0][0] if rows else None


def bring_up(db: apsw.Connection) -> object:
    """Make the tables where there are none, in the caller's transaction; return the version."""
    version = version_of(db)
    if version is None:
        if db.execute("SELECT 1 FROM sqlite_master").fetchall():
            return "of another program"
        db.execute(_NEW)
        return VERSION
    return version

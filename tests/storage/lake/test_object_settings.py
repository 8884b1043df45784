"""S3 at an endpoint of one's own: one way to say where it is, for files and for the storage, tried against moto."""

from __future__ import annotations

import socket

import pytest

import dstream as ds
from dstream.errors import DStreamError, SetupError
from dstream.filesystem.urls import obstore_options, s3fs_options
from dstream.spi.store import Options
from dstream.storage import Settings, open_storage
from reducers import to_files, to_ilist
from sources import text_files

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION")
OTHERS = ("AWS_DEFAULT_REGION", "AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ALLOW_HTTP")


@pytest.fixture(autouse=True)
def quiet(monkeypatch, tmp_path):
    """An environment that says nothing of AWS, and a home without its files; notes of sinks settle at once."""
    for name in (*KEYS, *OTHERS):
        monkeypatch.delenv(name, raising=False)
    for name, file in (("AWS_SHARED_CREDENTIALS_FILE", "credentials"), ("AWS_CONFIG_FILE", "config")):
        monkeypatch.setenv(name, str(tmp_path / file))
    monkeypatch.setattr("dstream.filesystem.output_folders.SETTLED", 0.01)


def by_variables(monkeypatch, tmp_path, endpoint):
    """Say it all in the environment."""
    for name, value in zip(KEYS, ("test", "test", "", "", "eu-west-1"), strict=True):
        if value:
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)


def by_profile(monkeypatch, tmp_path, endpoint):
    """Say it all in the files of a profile, of which the environment has the name."""
    (tmp_path / "credentials").write_text("[mine]\naws_access_key_id = test\naws_secret_access_key = test\n")
    (tmp_path / "config").write_text(f"[profile mine]\nregion = eu-west-1\nendpoint_url = {endpoint}\n")
    monkeypatch.setenv("AWS_PROFILE", "mine")


@pytest.mark.parametrize("said", [by_variables, by_profile], ids=["variables", "profile"])
def test_one_way_serves_files_and_the_storage(monkeypatch, tmp_path, endpoint, bucket, said):
    """Over http, without a word about that: files are written and read, and a list is kept."""
    said(monkeypatch, tmp_path, endpoint)

    with ds.connect(engine="local", storage=f"{bucket}/store") as ctx:
        ctx.stream(["a", "b"]).collect(to_files(f"{bucket}/out"))
        ctx.read(text_files(f"{bucket}/out/*")).map(str.upper).collect(to_ilist("words"))

        assert sorted(ctx.get_list("words")) == ["A", "B"]


def test_a_store_that_does_not_answer_is_named_in_words(monkeypatch, tmp_path):
    """Without the structures of the library; what to look at is said."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    by_variables(monkeypatch, tmp_path, f"http://127.0.0.1:{port}")
    monkeypatch.setattr("dstream.filesystem.object_folder.RETRIES", {"max_retries": 0})

    with pytest.raises(DStreamError, match=r"dstream docs object-stores") as caught:
        open_storage("s3://nowhere/store", Settings()).create("map", "m", Options())
    for error in (caught.value, caught.value.__cause__):
        assert "Debug source" not in str(error)
        assert "RetryError" not in str(error)


def test_a_profile_that_is_not_there_is_refused(monkeypatch):
    """With the files that were read."""
    monkeypatch.setenv("AWS_PROFILE", "mien")

    with pytest.raises(SetupError, match=r"no profile 'mien', which AWS_PROFILE names, in .*credentials and .*config"):
        open_storage("s3://bucket/store", Settings())


def test_a_profile_without_keys_says_what_to_do(monkeypatch, tmp_path):
    """One that takes its credentials from a role or a login: they go through the environment."""
    (tmp_path / "config").write_text("[profile mine]\nrole_arn = arn:aws:iam::1:role/a\n")
    monkeypatch.setenv("AWS_PROFILE", "mine")

    with pytest.raises(SetupError, match="export-credentials"):
        obstore_options("s3")["credential_provider"]()


def test_s3fs_gets_what_it_would_miss(monkeypatch):
    """It reads profiles and keys itself, and knows AWS_DEFAULT_REGION alone."""
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://host:1")

    assert s3fs_options() == {"endpoint_url": "http://host:1", "client_kwargs": {"region_name": "eu-west-1"}}
    assert obstore_options("gs") == {}

"""Devices and pipes in place of files: refused where they have no end or would be waited for, else read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest

import chainframe as cf
from chainframe.cli import main
from chainframe.testing import Cassette, LocalService
from conftest import environment


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe has a name on Unix only")
@pytest.mark.parametrize("method", ["to_csv", "to_json"])
def test_file_that_is_not_regular_is_refused(
    service: LocalService, client: cf.Client, tmp_path: Path, method: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    sent = service.request_count
    for path in (tmp_path / "pipe", Path(os.devnull)):
        for mode in ("resume", "overwrite", "error"):
            with pytest.raises(cf.ExportError, match=r"is not a regular file|exists"):
                getattr(client.blocks(), method)(path, mode=mode)
    assert service.request_count == sent
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe has a name on Unix only")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pipe", "--format", "parquet"], "parquet needs a file"),
        (["pipe.parquet"], "parquet needs a file"),
        (["pipe.csv.gz"], "is a stream, which is not compressed; name it without .gz"),
        (["pipe.jsonl.gz", "--format", "jsonl"], "is a stream, which is not compressed; name it without .gz"),
    ],
)
def test_command_refuses_a_pipe_for_a_format_that_is_not_streamed(
    at_service: LocalService,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    name, *options = arguments
    os.mkfifo(tmp_path / name)
    sent = at_service.request_count
    assert main(["blocks", "-o", str(tmp_path / name), *options]) == 2
    assert said in capsys.readouterr().err
    assert at_service.request_count == sent
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.skipif(os.name == "nt", reason="devices and pipes are files on Unix only")
@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_special_file_is_refused_wherever_a_file_is_read(at_service: LocalService, tmp_path: Path, kind: str) -> None:
    """`/dev/null` in place of `/dev/zero`, which a fault would read until the memory is used up."""
    file = tmp_path / "endless.jsonl"
    if kind == "device":
        file.symlink_to(os.devnull)
    else:
        os.mkfifo(file)
    problem = f"it is a {kind}; name a file"
    with pytest.raises(cf.CassetteError, match=f"cannot be read: {problem}$"):
        Cassette(file, mode="none")
    with pytest.raises(cf.CassetteError, match=f"cannot be read: {problem}$"):
        at_service.load_cassette(file)
    with pytest.raises(cf.ConfigError, match=rf"^ca_bundle \(.*\) cannot be read: {problem}$"):
        at_service.client(base_url="https://127.0.0.1", ca_bundle=file)
    with pytest.raises(cf.ConfigError, match=r"is not a regular file; name another$"):
        at_service.load("blocks", file)


@pytest.mark.usefixtures("at_service")
@pytest.mark.skipif(os.name == "nt", reason="a device is a file on Unix only")
def test_values_of_an_option_are_not_read_from_a_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "endless").symlink_to(os.devnull)
    assert main(["blocks", "--height", f"@{tmp_path / 'endless'}"]) == 2
    assert "cannot be read: it is a device; name a file" in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_pipe_of_a_shell_is_read(service: LocalService, tmp_path: Path, folder: str) -> None:
    if not Path(folder).exists():
        pytest.skip("a descriptor has no such path here")
    with service.client(cassette=Cassette(tmp_path / "blocks.jsonl", mode="all")) as client:
        blocks = client.blocks(max_items=2).collect()
    reading, writing = os.pipe()
    os.write(writing, (tmp_path / "blocks.jsonl").read_bytes())
    os.close(writing)
    with service.client(cassette=Cassette(f"{folder}/{reading}", mode="none")) as client:
        os.close(reading)
        assert client.blocks(max_items=2).collect() == blocks


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe has a name on Unix only")
def test_pipe_among_certificates_is_not_waited_for(service: LocalService, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(cf.ConfigError, match="must contain at least one PEM certificate"):
        service.client(base_url="https://127.0.0.1", ca_bundle=tmp_path)


@pytest.mark.usefixtures("at_service")
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe has a name on Unix only")
def test_values_of_an_option_are_read_from_a_pipe(
    client: cf.Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heights = "".join(f"{block.height}\n" for block in client.blocks(max_items=2))
    os.mkfifo(tmp_path / "heights")
    writer = Thread(target=(tmp_path / "heights").write_text, args=(heights,))
    writer.start()
    assert main(["blocks", "--height", f"@{tmp_path / 'heights'}"]) == 0
    writer.join()
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="standard input has a path on Unix only")
@pytest.mark.parametrize(
    "arguments",
    [
        ["blocks", "--height", "@-"],
        ["blocks", "--height", "@/dev/stdin"],
        ["blocks", "--height", "@/dev/fd/0"],
        ["cassette", "show", "/dev/stdin"],
        ["cassette", "show", "/dev/fd/0"],
    ],
)
def test_named_pipe_whose_writer_has_ended_is_read_by_its_descriptor(
    service: LocalService, tmp_path: Path, arguments: list[str]
) -> None:
    file = tmp_path / "blocks.jsonl"
    with service.client(cassette=Cassette(file, mode="all")) as client:
        heights = "".join(f"{block.height}\n" for block in client.blocks(max_items=2))
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)
    (tmp_path / "pipe").write_bytes(file.read_bytes() if "cassette" in arguments else heights.encode())
    command = [sys.executable, "-m", "chainframe", *arguments]
    done = subprocess.run(
        command,
        stdin=reading,
        capture_output=True,
        check=False,
        timeout=120,
        env={**os.environ, **environment(service)},
    )
    os.close(reading)
    assert done.stderr == b""
    assert len(done.stdout.splitlines()) == (1 if "cassette" in arguments else 2)


@pytest.mark.usefixtures("at_service")
@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="only Linux has such a folder")
def test_output_in_a_folder_of_dev_is_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    with TemporaryDirectory(dir="/dev/shm") as folder:
        output = Path(folder) / "blocks.parquet"
        assert main(["blocks", "--max-items", "3", "-o", str(output)]) == 0
        assert main(["blocks", "--max-items", "3", "-o", str(output), "--mode", "error"]) == 2
        assert "exists" in capsys.readouterr().err
        assert list(Path(folder).iterdir()) == [output]

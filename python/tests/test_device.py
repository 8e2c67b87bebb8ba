"""Keys on CUDA devices. Without a device and torch these tests are skipped; what needs none is tested everywhere."""

import gc
import os
import pickle
import time

import numpy as np
import pytest

import pleachdb as pl

try:
    import torch

    HAS_CUDA = torch.cuda.is_available()
except ImportError:
    torch = None
    HAS_CUDA = False

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")
needs_cuda = pytest.mark.skipif(not HAS_CUDA, reason="torch with a CUDA device is not here")

COUNT = 100_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("device")


def make(folder, key="int64", value="int64"):
    path = folder / f"{key}-{value}.pleach"
    if not path.exists():
        keys = np.unique(np.random.default_rng(1).integers(0, 250 if key == "uint8" else 4 * COUNT, COUNT))
        pl.build({"k": keys.astype(key), "v": (np.arange(len(keys)) + 1).astype(value)}, path)
    return path


def test_without_a_device(folder):
    if not HAS_CUDA:
        with pytest.raises(pl.DeviceError):
            pl.open(make(folder), device="cuda")
    for name in ["cpu", "cuda:x", "tpu", "-1"]:
        with pytest.raises(pl.InputError, match="device="):
            pl.open(make(folder), device=name)


@needs_torch
def test_tensors_of_the_host(folder):
    index = pl.open(make(folder))
    values, found = index.get_many(torch.tensor([1, 2, 3, 10**9]))
    expected = index.get_many(np.array([1, 2, 3, 10**9]))
    assert values.tolist() == expected[0].tolist() and found.tolist() == expected[1].tolist()


@needs_torch
def test_index_map_on_the_host(folder):
    from pleachdb.torch import IndexMap

    index = pl.open(make(folder, value="uint32"))
    rows = IndexMap(index, missing=-1)
    ids = torch.randint(-5, 4 * COUNT, (7, 11))
    values, found = index.get_many(ids.reshape(-1).numpy())
    expected = np.where(found, values.astype(np.int64), -1).reshape(7, 11)
    assert rows(ids).dtype == torch.int64 and rows(ids).tolist() == expected.tolist()
    with torch.inference_mode():
        assert rows(ids).tolist() == expected.tolist()
    compiled = torch.compile(lambda ids: rows(ids) + 1, backend="eager", fullgraph=True)
    assert compiled(ids).tolist() == (expected + 1).tolist()
    assert pickle.loads(pickle.dumps(rows))(ids).tolist() == expected.tolist()
    torch.library.opcheck(torch.ops.pleachdb.index_map, (ids, rows._handle, -1))
    assert rows(torch.empty(0, dtype=torch.int64)).shape == (0,)
    with pytest.raises(pl.TypesError):
        IndexMap(pl.open(make(folder, value="float64")))(ids)
    gone = IndexMap(index)._handle + 10**6
    with pytest.raises(pl.ClosedError):
        torch.ops.pleachdb.index_map(ids, gone, 0)


@needs_torch
def test_index_map_follows_generations(folder):
    from pleachdb.torch import IndexMap

    path = folder / "live.pleach"
    pl.build({"k": [1, 2], "v": [10, 20]}, path)
    live = pl.live(path)
    rows = IndexMap(live)
    devices = ["cpu"] + (["cuda"] if HAS_CUDA else [])
    for device in devices:
        assert rows(torch.tensor([2, 3], device=device)).tolist() == [20, 0]
    pl.build({"k": [2, 3], "v": [21, 31]}, path)
    assert live.refresh()
    for device in devices:
        assert rows(torch.tensor([2, 3], device=device)).tolist() == [21, 31]


DTYPES = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]


@needs_cuda
@pytest.mark.parametrize("key", ["int64", "uint64", "int32", "uint32", "float64"])
@pytest.mark.parametrize("value", ["int64", "uint32", "float64", "float32", "int32", "uint64"])
def test_every_type(folder, key, value):
    index = pl.open(make(folder, key, value))
    for dtype in DTYPES + ["float32", "float64"]:
        for count in [0, 1, 31, 33, 5000]:
            rng = np.random.default_rng(count)
            if dtype.startswith("float"):
                keys = rng.integers(-9, 4 * COUNT, count).astype(dtype)
                keys[::7] += 0.5
            else:
                info = np.iinfo(dtype)
                keys = rng.integers(info.min, info.max, count, dtype=dtype, endpoint=True)
                keys[::2] = rng.integers(0, min(info.max, 4 * COUNT), len(keys[::2]))
            on_device = torch.from_numpy(keys).cuda()
            if dtype.startswith("float") and key != "float64":
                with pytest.raises(pl.TypesError):
                    index.get_many(on_device)
                continue
            expected = index.get_many(keys)
            values, found = index.get_many(on_device)
            assert values.device.type == "cuda" and found.dtype == torch.bool
            assert values.cpu().numpy().dtype == np.dtype(value)
            np.testing.assert_array_equal(found.cpu().numpy(), expected[1], err_msg=f"{dtype} {count}")
            np.testing.assert_array_equal(values.cpu().numpy(), expected[0], err_msg=f"{dtype} {count}")
            np.testing.assert_array_equal(index.contains_many(on_device).cpu().numpy(), expected[1])
    same = torch.from_numpy(np.arange(1000).astype(key)).cuda()
    np.testing.assert_array_equal(
        index.lower_bound_many(same).cpu().numpy(), index.lower_bound_many(same.cpu().numpy()).astype(np.int64)
    )
    ranks, found = index.rank_many(same)
    np.testing.assert_array_equal(found.cpu().numpy(), index.rank_many(same.cpu().numpy())[1])


@needs_cuda
@pytest.mark.parametrize("key", ["uint32", "int32", "int64", "float64"])
@pytest.mark.parametrize("value", ["int32", "float64"])
def test_near_keys(folder, key, value):
    index = pl.open(make(folder, key, value))
    keys = torch.arange(-5 if key != "uint32" else 0, 4 * COUNT + 50, 7, device="cuda").to(getattr(torch, key))
    for name in ["floor_many", "ceiling_many", "nearest_many"]:
        own, values, found = getattr(index, name)(keys)
        wanted_keys, wanted_values = getattr(index, name)(keys.cpu().numpy())
        there = wanted_keys.is_valid().to_numpy(zero_copy_only=False)
        np.testing.assert_array_equal(found.cpu().numpy(), there)
        np.testing.assert_array_equal(own.cpu().numpy()[there], wanted_keys.drop_null().to_numpy())
        np.testing.assert_array_equal(values.cpu().numpy()[there], wanted_values.drop_null().to_numpy())
        assert not own.cpu().numpy()[~there].any() and not values.cpu().numpy()[~there].any()


@needs_cuda
def test_intervals_on_a_device(folder):
    starts = np.arange(0, 10 * COUNT, 10, dtype=np.uint32)
    pl.build({"k": starts, "last": starts + 4}, folder / "intervals.pleach", interval="last")
    index = pl.open(folder / "intervals.pleach")
    keys = torch.arange(0, 2000, device="cuda").to(torch.uint32)
    expected = (np.arange(2000) % 10) < 5
    np.testing.assert_array_equal(index.contains_many(keys).cpu().numpy(), expected)
    ranks, _ = index.rank_many(keys)
    np.testing.assert_array_equal(ranks.cpu().numpy(), np.where(expected, np.arange(2000) // 10, -1))
    with pytest.raises(pl.TypesError):
        index.get_many(keys)


@needs_cuda
def test_shapes_and_refusals(folder):
    index = pl.open(make(folder))
    keys = torch.arange(2000, device="cuda")
    strided = keys[::2]
    np.testing.assert_array_equal(index.get_many(strided)[0].cpu(), index.get_many(strided.cpu().numpy())[0])
    with pytest.raises(pl.InputError, match="dimensions"):
        index.get_many(keys.reshape(20, 100))
    with pytest.raises(pl.TypesError):
        index.get_many(keys.to(torch.bfloat16))
    with pytest.raises(pl.InputError, match="out"):
        index.get_many(keys, out=np.empty(2000, np.int64))
    with pytest.raises(pl.TypesError):
        index.upper_bound_many(keys)
    pl.build({"k": ["a", "b"], "v": [1, 2]}, folder / "text.pleach")
    with pytest.raises(pl.TypesError):
        pl.open(folder / "text.pleach").get_many(keys)
    pl.build({"k": [1, 2], "v": ["a", "b"]}, folder / "words.pleach")
    with pytest.raises(pl.TypesError):
        pl.open(folder / "words.pleach").get_many(keys)
    empty = {"k": np.zeros(0, np.int64), "v": np.zeros(0, np.int64)}
    pl.build(empty, folder / "empty.pleach")
    assert not pl.open(folder / "empty.pleach").get_many(keys)[1].any()
    closed = pl.open(make(folder))
    closed.close()
    with pytest.raises(pl.ClosedError):
        closed.get_many(keys)


@needs_cuda
def test_calls_return_before_the_work_is_done(folder):
    index = pl.open(make(folder))
    keys = torch.arange(1 << 20, device="cuda")
    expected = index.get_many(keys)[0].cpu()
    torch.cuda.synchronize()
    for stream in [torch.cuda.current_stream(), torch.cuda.Stream()]:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(400_000_000)
            started = time.perf_counter()
            values, _ = index.get_many(keys)
            took = time.perf_counter() - started
            assert not stream.query(), "the long kernel is still at work"
        stream.synchronize()
        assert took < 0.1, took
        assert torch.equal(values.cpu(), expected)


@needs_cuda
def test_inputs_and_index_are_freed_at_once(folder):
    path = make(folder)
    keys = torch.arange(1 << 20)
    expected = pl.open(path).get_many(keys.numpy())[0]
    answers = []
    for _ in range(20):
        index = pl.open(path)
        torch.cuda._sleep(2_000_000)
        answers.append(index.get_many(keys.cuda())[0])
        # The memory of the keys is another tensor's at once.
        torch.full((1 << 20,), -7, dtype=torch.int64, device="cuda")
        del index
        gc.collect()
    for values in answers:
        np.testing.assert_array_equal(values.cpu().numpy(), expected)


@needs_cuda
def test_recorded_graphs(folder):
    from pleachdb.torch import IndexMap

    index = pl.open(make(folder, value="uint32"))
    rows = IndexMap(index, missing=3)
    for count in [100, 1 << 16, 1 << 23]:
        ids = torch.randint(0, 4 * COUNT, (count,), device="cuda")
        rows(ids)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            answer = rows(ids)
            values, found = index.get_many(ids)
        for seed in range(3):
            torch.manual_seed(seed)
            ids.copy_(torch.randint(0, 4 * COUNT, (count,), device="cuda"))
            graph.replay()
            expected, is_there = index.get_many(ids.cpu().numpy())
            np.testing.assert_array_equal(found.cpu().numpy(), is_there)
            np.testing.assert_array_equal(values.cpu().numpy(), expected)
            np.testing.assert_array_equal(answer.cpu().numpy(), np.where(is_there, expected.astype(np.int64), 3))
    # A recorded graph works on when the index is gone.
    index.close()
    del index, rows
    gc.collect()
    graph.replay()
    np.testing.assert_array_equal(values.cpu().numpy(), expected)


@needs_cuda
def test_index_map_on_a_device(folder):
    from pleachdb.torch import IndexMap

    index = pl.open(make(folder, value="int32"))
    rows = IndexMap(index, missing=-1)
    ids = torch.randint(-5, 4 * COUNT, (300, 41), device="cuda")
    values, found = index.get_many(ids.reshape(-1).cpu().numpy())
    expected = np.where(found, values.astype(np.int64), -1).reshape(300, 41)
    np.testing.assert_array_equal(rows(ids).cpu().numpy(), expected)
    compiled = torch.compile(lambda ids: rows(ids) * 2, fullgraph=True)
    try:
        np.testing.assert_array_equal(compiled(ids).cpu().numpy(), expected * 2)
    except torch._inductor.exc.InductorError as error:
        pytest.skip(f"inductor does not work here: {error}")


@needs_cuda
def test_keys_of_the_host_on_a_device(folder):
    index = pl.open(make(folder), device="cuda")
    plain = pl.open(make(folder))
    keys = np.random.default_rng(3).integers(-9, 4 * COUNT, (1 << 22) + 77)
    for asked in [keys, keys.astype(">i8"), keys[::3], keys[:1], keys[:0], keys.astype(np.int32)]:
        for one, other in zip(index.get_many(asked), plain.get_many(asked)):
            np.testing.assert_array_equal(one, other)
    again = pickle.loads(pickle.dumps(index))
    np.testing.assert_array_equal(again.get_many(keys[:99])[0], plain.get_many(keys[:99])[0])


@needs_cuda
def test_a_child_of_fork_is_told(folder):
    index = pl.open(make(folder), device="cuda")
    keys = np.arange(100)
    child = os.fork()
    if child == 0:
        try:
            index.get_many(keys)
        except pl.DeviceError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@needs_cuda
def test_cupy(folder):
    cupy = pytest.importorskip("cupy")
    index = pl.open(make(folder))
    keys = cupy.arange(5000)
    expected = index.get_many(np.arange(5000))
    values, found = index.get_many(keys)
    assert isinstance(values, cupy.ndarray) and found.dtype == bool
    np.testing.assert_array_equal(cupy.asnumpy(values), expected[0])
    np.testing.assert_array_equal(cupy.asnumpy(found), expected[1])
    with cupy.cuda.Stream():
        np.testing.assert_array_equal(cupy.asnumpy(index.get_many(keys[::2])[0]), expected[0][::2])


@needs_cuda
def test_jax(folder):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("jax has no GPU here")
    index = pl.open(make(folder, "int32", "int32"))
    expected = index.get_many(np.arange(5000))
    for _ in range(5):
        keys = jax.numpy.arange(5000, dtype="int32") + 0
        values, found = index.get_many(keys)
        del keys
        assert isinstance(values, jax.Array)
        np.testing.assert_array_equal(np.asarray(values), expected[0])
        np.testing.assert_array_equal(np.asarray(found), expected[1])

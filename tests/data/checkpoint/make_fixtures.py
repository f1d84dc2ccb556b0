#!/usr/bin/env python3
"""Make the files beside this script. Needs torch and safetensors from PyPI (made with torch 2.15.0, safetensors 0.8.0).

NAME.bin and NAME.safetensors are checkpoints as torch.save and safetensors.torch.save_file write them; NAME.json holds
what they must give: {tensor: {type, dims, bytes}}, bytes as hex, contiguous and little-endian, made by PyTorch itself.
The refused_*.bin files must be refused, each for its own reason.
"""
import collections, io, json, os, pathlib, struct, zipfile
import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent

def expectation(tensor):
    plain = tensor.detach().clone(memory_format=torch.contiguous_format)
    name = str(plain.dtype).removeprefix("torch.")
    dims = list(plain.shape)
    if name == "float4_e2m1fn_x2":
        name, dims[-1] = "float4_e2m1fn", dims[-1] * 2
    raw = plain.reshape(-1).view(torch.uint8) if plain.numel() else plain.new_empty(0, dtype=torch.uint8)
    return {"type": name, "dims": dims, "bytes": bytes(raw.tolist()).hex()}


def write_expectation(stem, tensors):
    rows = {k: expectation(v) for k, v in sorted(tensors.items())}
    (HERE / f"{stem}.json").write_text("{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items()) + "\n}\n")


def all_types():
    torch.manual_seed(0)
    base = torch.arange(6).reshape(2, 3)
    out = {}
    for t in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        out[str(t)] = torch.randn(2, 3).to(t)
    for t in (torch.int64, torch.int32, torch.int16, torch.int8):
        out[str(t)] = (base - 3).to(t)
    for t in (torch.uint64, torch.uint32, torch.uint16, torch.uint8):
        out[str(t)] = base.to(torch.uint8).to(t)
    out["torch.bool"] = base > 2
    out["torch.complex64"] = torch.randn(2, 3, dtype=torch.complex64)
    for t in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz):
        out[str(t)] = torch.randn(2, 3).to(t)
    out["torch.float8_e8m0fnu"] = torch.tensor([120, 127, 130], dtype=torch.uint8).view(torch.float8_e8m0fnu)
    out["scalar"] = torch.tensor(3.5)
    out["empty"] = torch.empty(0, 4)
    return out


def views():
    torch.manual_seed(1)
    whole = torch.randn(4, 6)
    word = torch.randn(5, 3)
    d = collections.OrderedDict()
    d["whole"] = whole
    d["rows"] = whole[1:3]                       # contiguous, with an offset
    d["columns"] = whole[:, 2:5]                 # strided
    d["transposed"] = whole.t()
    d["batch_transposed"] = torch.randn(2, 3, 5).transpose(1, 2)
    d["permuted"] = torch.randn(2, 3, 4).permute(2, 0, 1)
    d["reversed_axes"] = torch.randn(2, 3, 4).permute(2, 1, 0)
    d["channels_last"] = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    d["expanded"] = torch.randn(3, 1).expand(3, 4)
    d["every_second"] = torch.arange(10)[::2]
    d["one_row"] = whole[2:3].t()                # sizes of one make strides meaningless
    d["tied.a"] = word
    d["tied.b"] = word
    d["parameter"] = torch.nn.Parameter(torch.randn(2, 2))
    d["with_attributes"] = torch.randn(2)
    d["with_attributes"].note = 1
    return d


def repack(source, target, change=lambda name, data: data, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(source if isinstance(source, io.BytesIO) else HERE / source) as old, zipfile.ZipFile(HERE / target, "w") as new:
        for name in old.namelist():
            if not name.endswith(".debug_pkl"):          # it holds paths of the machine
                new.writestr(zipfile.ZipInfo(name), change(name, old.read(name)), compression)


def as_zip64(source, target):
    """The same file with a ZIP64 directory, as torch.save writes for files over 4 GiB."""
    data = (HERE / source).read_bytes()
    with zipfile.ZipFile(HERE / source) as old:
        entries, begin = old.infolist(), old.start_dir
    out = bytearray(data[:begin])
    for e in entries:
        name = e.filename.encode()
        extra = struct.pack("<HHQQQ", 1, 24, e.file_size, e.compress_size, e.header_offset)
        out += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 45, 45, e.flag_bits, e.compress_type, 0, 0, e.CRC, 0xFFFFFFFF,
                           0xFFFFFFFF, len(name), len(extra), 0, 0, 0, 0, 0xFFFFFFFF) + name + extra
    size, end = len(out) - begin, len(out)
    out += struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, len(entries), len(entries), size, begin)
    out += struct.pack("<IIQI", 0x07064B50, 0, end, 1)
    out += struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    (HERE / target).write_bytes(out)
    assert zipfile.ZipFile(HERE / target).testzip() is None and torch.load(HERE / target)


class Attack:
    def __reduce__(self):
        return os.system, ("echo attacked",)


def main():
    types = all_types()
    save_file({**types, **packed()}, HERE / "types.safetensors", metadata={"format": "pt"})
    write_expectation("types_safetensors", {**types, **packed()})
    torch.save(types, HERE / "types.bin")
    write_expectation("types", types)

    d = views()
    torch.save(d, HERE / "views.bin")
    write_expectation("views", d)

    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    torch.manual_seed(2)
    for p in model.parameters():
        torch.nn.init.normal_(p)
    state = model.state_dict()                   # an OrderedDict with the attribute _metadata
    write_expectation("module", state)
    torch.save(state, HERE / "module.bin")
    torch.save(state, HERE / "protocol4.bin", pickle_protocol=4)
    torch.save({"epoch": 3, "lr": 1e-3, "name": "x", "big": 1 << 80, "state_dict": state}, HERE / "nested.bin")
    as_zip64("module.bin", "zip64.bin")

    torch.save(state, HERE / "refused_legacy.bin", _use_new_zipfile_serialization=False)
    repack("module.bin", "refused_compressed.bin", compression=zipfile.ZIP_DEFLATED)
    repack("module.bin", "refused_big_endian.bin", lambda n, b: b"big" if n.endswith("byteorder") else b)
    torch.save({"a": torch.ones(2), "b": torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)}, HERE / "refused_quantized.bin")
    torch.save({"a": torch.ones(2), "b": torch.ones(2, 2).to_sparse()}, HERE / "refused_sparse.bin")
    torch.save({"a": torch.complex(torch.ones(2), torch.ones(2)).conj()}, HERE / "refused_conjugate.bin")
    torch.save({"a": torch.ones(2), "b": Attack()}, HERE / "refused_attack.bin")
    torch.save([1, 2], HERE / "refused_list.bin")
    script = io.BytesIO()
    with torch.no_grad():
        torch.jit.save(torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(1, 2)), script)
    repack(script, "refused_script.bin")


def packed():
    return {"torch.float4_e2m1fn_x2": torch.tensor([[0x10, 0x32], [0x54, 0x76]], dtype=torch.uint8).view(torch.float4_e2m1fn_x2)}


if __name__ == "__main__":
    main()

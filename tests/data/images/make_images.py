#!/usr/bin/env python3
"""Make small pictures in the modes and forms that files have, and what Pillow reads from them; and hashes of resized noise.

    make_images.py        (writes into its own folder; made with Pillow 13.0.0)

images.json: for each file the size and the SHA-256 of the bytes of ImageOps.exif_transpose(Image.open(f)).convert("RGB").
Lossy files have NAME.expected.png beside them instead, to compare with a tolerance: decoders differ in the last bit.
resize.json: [width, height, new width, new height, filter, SHA-256 of the RGB bytes]; the source is noise(width, height).
"""
import hashlib, io, json, pathlib, struct, zlib
import numpy as np
from PIL import Image, ImageOps

out = pathlib.Path(__file__).parent
rng = np.random.default_rng(11)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pack(row, depth):
    if depth == 8:
        return row.astype(np.uint8).tobytes()
    if depth == 16:
        return row.astype(">u2").tobytes()
    bits = np.unpackbits(row.astype(np.uint8)[:, None], axis=1)[:, -depth:]
    return np.packbits(bits.reshape(-1)).tobytes()


def png(samples, color, depth, interlace=False, before=b"", after=b""):
    """A PNG file of height x width x channels samples; Pillow cannot write every kind."""
    h, w, c = samples.shape
    passes = [(0, 0, 1, 1)] if not interlace else [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    raw = b""
    for x, y, dx, dy in passes:
        part = samples[y::dy, x::dx]
        if part.size:
            raw += b"".join(b"\0" + pack(r.reshape(-1), depth) for r in part)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, color, 0, 0, interlace)) + before
            + chunk(b"IDAT", zlib.compress(raw)) + after + chunk(b"IEND", b""))


def exif(orientation, order="<"):
    return (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IHHHIHHI", 8, 1, 0x112, 3, 1, orientation, 0, 0)


W, H = 13, 9
files = {}
channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
for color, depths in {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}.items():
    for depth in depths:
        s = rng.integers(0, 1 << depth, (H, W, channels[color]))
        if (color, depth) == (0, 16):
            s[::2] //= 200  # so that both sides of the clipping at 255 occur
        palette = chunk(b"PLTE", rng.integers(0, 256, 3 << depth, dtype=np.uint8).tobytes()) if color == 3 else b""
        files[f"png-{color}-{depth}.png"] = png(s, color, depth, before=palette)
        if (color, depth) in ((0, 4), (2, 8), (3, 2)):
            files[f"png-{color}-{depth}-interlaced.png"] = png(s, color, depth, True, before=palette)
        if (color, depth) in ((0, 8), (2, 8), (3, 8)):
            trns = chunk(b"tRNS", bytes(range(100)) if color == 3 else s[0, 0].astype(">u2").tobytes())
            files[f"png-{color}-{depth}-transparent.png"] = png(s, color, depth, before=palette + trns)
rgb = rng.integers(0, 256, (H, W, 3))
for o in range(1, 10):
    files[f"png-exif-{o}.png"] = png(rgb, 2, 8, before=chunk(b"eXIf", exif(o, "<>"[o % 2])))
files["png-exif-late.png"] = png(rgb, 2, 8, after=chunk(b"eXIf", exif(6)))
profile = b"Exif\0\0" + exif(8)
files["png-raw-profile.png"] = png(rgb, 2, 8, before=chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(b"\nexif\n%8d\n" % len(profile) + profile.hex().encode() + b"\n")))
xmp = b'<x:xmpmeta><rdf:Description tiff:Orientation="3"/></x:xmpmeta>'
files["png-xmp.png"] = png(rgb, 2, 8, before=chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp))

y, x = np.mgrid[0:H * 2, 0:W * 2]
smooth = np.stack([127 + 100 * np.sin(x / 5 + k) * np.cos(y / (4 + k)) for k in range(3)], -1).round().astype(np.uint8)
picture = Image.fromarray(smooth)


def save(name, image, **options):
    b = io.BytesIO()
    image.save(b, name.split(".")[1].replace("jpg", "jpeg"), **options)
    files[name] = b.getvalue()


save("jpeg-gray.jpg", picture.convert("L"), quality=90)
save("jpeg-444.jpg", picture, quality=90, subsampling=0)
save("jpeg-422.jpg", picture, quality=90, subsampling=1)
save("jpeg-420.jpg", picture, quality=90, subsampling=2)
save("jpeg-progressive.jpg", picture, quality=90, progressive=True)
save("jpeg-cmyk.jpg", picture.convert("CMYK"), quality=90)
for o in (2, 5, 8):
    save(f"jpeg-exif-{o}.jpg", picture, quality=90, exif=b"Exif\0\0" + exif(o, "<>"[o % 2]))
save("jpeg-xmp.jpg", picture, quality=90, xmp=b"<tiff:Orientation>6</tiff:Orientation>")
save("webp-lossless.webp", picture, lossless=True)
save("webp-alpha.webp", Image.fromarray(np.concatenate([smooth, rng.integers(0, 256, (H * 2, W * 2, 1), dtype=np.uint8)], -1)), lossless=True, exact=True)
save("webp-exif.webp", picture, lossless=True, exif=exif(6))
save("webp-xmp.webp", picture, lossless=True, xmp=b'<a tiff:Orientation="7"/>')
save("webp-lossy.webp", picture, quality=90)
save("webp-animated.webp", picture, lossless=True, save_all=True, append_images=[picture.rotate(180)])

pictures = {}
for name, data in files.items():
    (out / name).write_bytes(data)
    im = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
    pictures[name] = {"size": im.size}
    if name.startswith("jpeg") or "lossy" in name:
        pictures[name]["expected"] = name.split(".")[0] + ".expected.png"
        im.save(out / pictures[name]["expected"])
    else:
        pictures[name]["sha256"] = hashlib.sha256(im.tobytes()).hexdigest()
(out / "images.json").write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in pictures.items()) + "\n}\n")


def noise(w, h):
    """Bytes of a linear congruential generator (Numerical Recipes), seeded by the size; with flat parts, so that clipping occurs."""
    n = w * h * 3
    state, values = (w * 65537 + h) & 0xffffffff, bytearray(n)
    for i in range(n):
        state = (state * 1664525 + 1013904223) & 0xffffffff
        v = state >> 24
        values[i] = 0 if v < 60 else 255 if v > 195 else v
    return Image.frombytes("RGB", (w, h), bytes(values))


sizes = [(64, 48, 32, 24), (97, 61, 48, 56), (45, 88, 56, 48), (10, 10, 10, 20), (10, 10, 20, 10), (1, 1, 7, 5), (7, 5, 1, 1), (200, 3, 3, 200), (3, 200, 200, 3), (33, 33, 224, 224), (40, 100, 40, 30), (100, 40, 30, 40), (51, 51, 50, 50),
         (320, 240, 224, 224), (8, 8, 8, 8)]
random = np.random.default_rng(3)
sizes += [tuple(int(v) for v in random.integers(1, 90, 4)) for _ in range(45)]
rows = [[w, h, W2, H2, f, hashlib.sha256(noise(w, h).resize((W2, H2), f).tobytes()).hexdigest()] for w, h, W2, H2 in sizes for f in range(6)]
(out / "resize.json").write_text("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")

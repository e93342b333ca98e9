"""How a store writes its longer texts: compressed, against a dictionary of what records say again
and again, so that a short record is short, too.

A packed text is one byte, the number of its dictionary, and a raw deflate stream. A dictionary that
has been used is never changed, for what was written with it must be read; a better one gets the
next number. Texts that would not get shorter are kept as they are.
"""

from __future__ import annotations

import zlib

# What deflate finds nearest to the end costs it the least.
_FIRST = (
    '{"status":"wrong","code":"shared_memory","evidence":"","max_error":null,"measurements":[]'
    '"unstable""timeout""build_error""crashed""rejected""over_limit""too_fast"'
    '"status":"win""status":"tie""status":"loss"'
    '"facts":[["registers",["shared_bytes","log":"","terms":{"alpha":0.01,"looks":'
    '"measured""recorded""warm""library""incumbent""conditions":[],"discarded":0}'
    '{"started_first":"reference","roles":["candidate","reference"],"samples_ns":[['
    '"started_first":"candidate"'
    '{"status":"ok","code":null,"evidence":"","max_error":null,"measurements":[{"workload":"'
    '4096x4096x4096","role":"baseline","reference_key":"","samples":{"candidate_ns":['
    '],"reference_ns":[],"reference_exact":true},"clock":"gpu-model","cache_state":"cold",'
    '"evidence":"modelled","machine":"h100-lecture"}],"facts":[],"log":"","floors_ns":[["'
    ']],"terms":null}'
    '{"key":"","found":{"lines":["device":{"name":"passages":[{"id":"","source":"","title":"'
    '{"reason":"it was tried before: x; change something else","kept":["dropped":'
    "The parent is bound by memory, so I change what limits it most. A small step from the parent."
    "```plan\\n1. \\n2. ```review\\nok\\nreject: ```c\\nvoid const float *restrict int64_t for "
    '```python\\nsplit("fuse("reorder("vectorize("unroll("parallel("'
    '```json\\n{\\"bm\\": 128, \\"bn\\": 64, \\"bk\\": 32, \\"warps\\": 8, \\"stages\\": 4, '
    '\\"group_m\\": 8}\\n```\\n'
    '```action\\n{\\"tool\\": \\"list\\", \\"arguments\\": {}}\\n```\\n{\\"changes\\": {'
    '{\\"tool\\": \\"submit\\", \\"arguments\\": {\\"program\\": \\"{\\\\\\"bm\\\\\\": 128, '
    '\\\\\\"bn\\\\\\": \\"measure\\"\\"estimate\\"\\"apply\\"'
    '{"answered_by":"","kind":"transient","message":"content""repairable"'
    '"refusal":"length""content_filter""usage_estimated":false'
    '["assistant",""],["user","'
    '{"after":[1,0,1],"completion":{"answered_by":"","cached_tokens":0,"completion_tokens":'
    ',"down":[],"finish_reason":"stop","id":"mock-2-","injected":null,"model":"mock",'
    '"prompt_tokens":1,"refusal":null,"seconds":0.0,"text":"\\n\\n```\\n","usage_estimated":true,'
    '"usd":0.0},"error":null,"key":"","model":"mock","new":[["user",""]],"request":{'
    '"max_tokens":4096,"model":"mock","schema":null,"seed":,"temperature":0.8},"template":""}'
)
_DICTIONARIES = {1: _FIRST.encode()}
_LATEST = 1
_LEVEL = 6
# What is shorter is not worth the time.
_SHORTEST = 64
# A window of 32 KiB, without a header.
_RAW = -15


def packed(text: str) -> str | bytes:
    """A text as it is written."""
    if len(text) < _SHORTEST:
        return text
    pack = zlib.compressobj(_LEVEL, wbits=_RAW, zdict=_DICTIONARIES[_LATEST])
    content = text.encode()
    short = bytes([_LATEST]) + pack.compress(content) + pack.flush()
    return short if len(short) < len(content) else text


def unpacked(written: str | bytes) -> str:
    """The text that was written.

    Raises:
        ValueError: if it is damaged, or packed in a way that this version does not know.
    """
    if isinstance(written, str):
        return written
    if not isinstance(written, bytes):
        raise ValueError(f"expected a text, found {written!r:.80}")
    known = _DICTIONARIES.get(written[0]) if written else None
    if known is None:
        expected = f"a packed text of dictionary 1 to {_LATEST}"
        raise ValueError(f"expected {expected}, found {written[:1]!r}")
    unpack = zlib.decompressobj(wbits=_RAW, zdict=known)
    try:
        text = unpack.decompress(written[1:]).decode()
    except zlib.error as error:
        raise ValueError(f"expected a packed text, found {error}") from None
    if not unpack.eof or unpack.unused_data:
        raise ValueError("expected a packed text, found a part of one")
    return text

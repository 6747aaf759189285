"""Maps in one order of their entries, so that equal maps have equal texts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from app.kernel.codecs.arrow.arrow_casts import map_entries, packed_offsets
from app.kernel.codecs.json.texts import joined, value_parts


def with_sorted_maps(array: pa.Array) -> pa.Array:
    """The values with the entries of all maps, nested ones too, in the order of their keys' texts."""
    kind = array.type
    if not _has_maps(kind):
        return array
    if pa.types.is_struct(kind):
        members = [with_sorted_maps(member) for member in array.flatten()]
        return pa.StructArray.from_arrays(members, type=kind, mask=array.is_null())
    if pa.types.is_list(kind):
        elements = with_sorted_maps(array.flatten())
        return pa.ListArray.from_arrays(packed_offsets(array), elements, type=kind, mask=array.is_null())
    entries = map_entries(array)
    keys, items = entries.flatten().flatten()
    offsets = packed_offsets(entries)
    owners = np.repeat(np.arange(len(array)), np.diff(offsets.to_numpy()))
    texts = joined(value_parts(keys), len(keys)).dictionary_encode()
    # The text of each key as its place among the texts in ascending order.
    places = np.argsort(np.argsort(texts.dictionary.to_numpy(zero_copy_only=False)))[texts.indices.to_numpy()]
    order = pa.array(np.lexsort((places, owners)))
    return pa.MapArray.from_arrays(
        offsets, keys.take(order), with_sorted_maps(items).take(order), type=kind, mask=array.is_null()
    )


def _has_maps(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return any(_has_maps(kind.field(number).type) for number in range(kind.num_fields))

"""How keys and values of a collection become bytes and columns, and come back.

`codec.Codec` is what a store uses; `codec_keys` says which keys are one key, `types` what a typed column holds,
`values` how anything else becomes bytes, and `pickles` which classes may be loaded.
"""

"""Lowering a plan: `local` is the readable definition, `spark` the product; both share the kernels.

`fusion` runs element-wise steps as one loop, `kernels` holds the per-partition operations,
`spilling` those that move to disk past a bound.
"""

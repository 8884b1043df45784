"""Lowering a plan: `local` is the readable definition, `spark` the product; both share the kernels.

`compiler` makes a `graph` of a plan, `explaining` says what it will run as, `kernels` holds what operations do to one
partition, `worker` what tasks on workers do, `progress` how far they are.
"""

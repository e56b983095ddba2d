"""npu-smi beside the fallback counters: command, parser, sampler, and the check of the chip ids."""

"""Sources of metrics: one file per source, each with the one method of :class:`.base.Collector`."""

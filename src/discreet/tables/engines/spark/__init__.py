"""Spark, classic or Connect: tables of a cluster, bounded and added up where they lie."""

"""A PySpark that cannot run txbatch is refused in a sentence, before anything of the engine is used."""

from __future__ import annotations

import pyspark
import pytest

from coordinator.engines.spark.session import spark_lease
from coordinator.engines.spark.spark_versions import check_spark, oldest_java
from state.errors import EngineError


@pytest.mark.parametrize("version", ["3.4.4", "2.4.8", "5.0.0", "5.1.0.dev1"])
def test_a_pyspark_out_of_the_range_is_named_with_what_to_install(monkeypatch, version):
    monkeypatch.setattr(pyspark, "__version__", version)
    sentence = f"PySpark {version} is installed, and txbatch runs on PySpark 3.5 to 4.3; install the one of these"
    with pytest.raises(EngineError, match=sentence), spark_lease("any", None, "local[1]", {}):
        pass


@pytest.mark.parametrize(("own", "java"), [("4.1.4", "4.1.0"), ("3.5.9", "3.5.1-amzn-0"), ("4.0.0.dev1", "4.0.0")])
def test_a_patch_release_more_or_less_is_the_same_spark(monkeypatch, own, java):
    monkeypatch.setattr(pyspark, "__version__", own)
    check_spark(java)


def test_another_spark_than_pysparks_is_named_with_the_version_to_install(monkeypatch):
    monkeypatch.setattr(pyspark, "__version__", "4.3.0")
    with pytest.raises(EngineError, match=r"PySpark 4.3.0 drives Spark 3.5.1.*pip install 'pyspark==3.5.\*'"):
        check_spark("3.5.1")


@pytest.mark.parametrize(("spark", "java"), [("3.5.0", 8), ("4.0.5", 17), ("4.3.0", 17)])
def test_each_spark_has_its_oldest_java(spark, java):
    assert oldest_java(spark) == java

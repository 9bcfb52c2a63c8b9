"""What tests on a broker share."""

from tests.support.kafka.topics_of_one_test import make_topic, topic_numbers

__all__ = ["make_topic", "topic_numbers"]

"""A Redis client that plays a script, and a clock that only moves by sleeping."""

from __future__ import annotations


class Scripted:
    """Answers each command with the next item of a list; exceptions are raised. The last one stays."""

    def __init__(self, *answers):
        self.answers, self.commands = list(answers), []

    def execute_command(self, *arguments):
        self.commands.append(arguments)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


class Time:
    """A clock that only moves by sleeping."""

    def __init__(self):
        self.now, self.slept = 0.0, []

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

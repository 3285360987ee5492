/** What workflow code that runs in a test has asked of the world, and what the test lets the world answer. */

/** The name of an activity, or of what a child or a signal is called in the test, with its input. */
export type Asked = [name: string, input: Record<string, unknown>]

export class Answers {
  /** In order. */
  asked: Asked[] = []
  /** By name; what has none answers nothing. */
  answers: Record<string, (input: never) => unknown> = {}

  async ask(name: string, input: object): Promise<unknown> {
    this.asked.push([name, input as Record<string, unknown>])
    return this.answers[name]?.(input as never)
  }

  names(): string[] {
    return this.asked.map(([name]) => name)
  }

  inputsOf(name: string): Record<string, unknown>[] {
    return this.asked.filter(([each]) => each === name).map(([, input]) => input)
  }
}

/** The states of a machine over time, in the words of its provider. */
export interface StateChange<State extends string, Reason = unknown> {
  atMs: number
  state: State
  reason?: Reason
}

interface HasHistory<Change> {
  /** Oldest first; never empty. */
  history: readonly Change[]
}

/** Returns the state at an instant. */
export function stateAt<Change extends StateChange<string>>(
  { history }: HasHistory<Change>,
  atMs: number,
): Change {
  return history.findLast((change) => change.atMs <= atMs) ?? history[0]!
}

/** Returns the actual state. */
export function stateOf<State extends string>({ history }: HasHistory<StateChange<State>>): State {
  return history.at(-1)!.state
}

/** A period in a state; `untilMs` is undefined while it lasts. */
export interface Run {
  fromMs: number
  untilMs: number | undefined
}

/** Returns the periods in the given states, one for each change into one of them. */
export function runsIn<State extends string>(
  { history }: HasHistory<StateChange<State>>,
  states: readonly State[],
): Run[] {
  return history.flatMap(({ state, atMs }, i): Run[] =>
    states.includes(state) ? [{ fromMs: atMs, untilMs: history[i + 1]?.atMs }] : [],
  )
}

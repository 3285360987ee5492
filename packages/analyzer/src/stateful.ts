/** Objects with `state_dict` and `load_state_dict`, which `torch.distributed.checkpoint` calls. */
import { memberOfClass } from './members'
import type { Arguments } from './calls'
import type { Frame, Interpreter } from './interpreter'
import { alternatives, dict, unknown, type CallEvent, type Value } from './values'

const PREFIX = 'torch.distributed.checkpoint.'

/** The arguments of a call that saves, with the state of each object in its place. */
export function withStates(
  run: Interpreter,
  { name, given }: { name: string; given: Arguments },
  frame: Frame,
): Arguments {
  if (name !== `${PREFIX}save` && name !== `${PREFIX}async_save`) return given
  const [first, ...others] = given.positional
  if (first?.kind !== 'dict') return given
  const entries = [...first.entries].map(([key, value]) => {
    const saving = methodOf(value, 'state_dict')
    const state =
      saving === undefined ? value : run.callFunction(saving, { positional: [], named: new Map(), frame })
    return [key, state] as const
  })
  return { ...given, positional: [dict(new Map(entries)), ...others] }
}

/** Loads each object's state from the file that the call reads. */
export function loadStates(run: Interpreter, event: CallEvent, frame: Frame): void {
  const [first] = event.positional
  if (event.name !== `${PREFIX}load` || first?.kind !== 'dict') return
  for (const [key, value] of first.entries) {
    const loading = methodOf(value, 'load_state_dict')
    const state = unknown({ options: new Set(), origins: [{ call: event, key }] })
    if (loading !== undefined) run.callFunction(loading, { positional: [state], named: new Map(), frame })
  }
}

function methodOf(value: Value, name: string): Extract<Value, { kind: 'function' }> | undefined {
  for (const each of alternatives(value)) {
    const member = each.kind === 'instance' ? memberOfClass(each.definition, name) : undefined
    if (member?.kind === 'function') return { ...member, self: each }
  }
  return undefined
}

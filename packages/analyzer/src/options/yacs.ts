/** `yacs.config.CfgNode`: a configuration in Python, which a file and the command line change. */
import type { Interpreter } from '../interpreter'
import { alternatives, constant, textOf, type CallEvent, type Value } from '../values'

export function yacsResult(run: Interpreter, event: CallEvent): Value | undefined {
  const { name, method, receiver, positional, file } = event
  if (!name.startsWith('yacs.config.CfgNode()') || receiver === undefined) return undefined
  if (method === 'clone') return receiver
  if (method !== 'merge_from_file') return undefined
  const path = textOf(positional[0])
  const data = path === undefined ? undefined : run.project.data(path, file.path)
  if (data !== undefined) for (const each of alternatives(receiver)) merge(each, data)
  return constant(null)
}

/** Sets the entries of a file in a node and the nodes below it. */
function merge(node: Value, data: Value): void {
  if (node.kind !== 'made' || data.kind !== 'dict') return
  for (const [key, value] of data.entries) {
    const below = node.attributes.get(key)
    if (below?.kind === 'made' && value.kind === 'dict') merge(below, value)
    else node.attributes.set(key, value)
  }
}

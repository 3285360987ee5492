/** World files: what a cloud is like. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { isMap, isScalar, LineCounter, parseDocument, type Node, type YAMLMap } from 'yaml'
import { innermost } from '../issues'
import { worldSchema, type WorldPlan, type WorldText } from './schema'

/** A world that cannot be used; the message names file, line and field, and says what to do. */
export class WorldError extends Error {}

export interface LoadedWorld {
  plan: WorldPlan
  /** Where relative paths of recordings begin. */
  directory: string
}

/** Reads a world file, YAML or JSON. Throws `WorldError`. */
export function loadWorld(path: string): LoadedWorld {
  if (!existsSync(path))
    throw new WorldError(`there is no world file ${path}; give the path of a YAML or JSON file`)
  const lines = new LineCounter()
  const document = parseDocument(readFileSync(path, 'utf8'), {
    lineCounter: lines,
    prettyErrors: false,
    merge: true,
  })
  const [fault] = document.errors
  if (fault !== undefined) {
    const { line, col } = lines.linePos(fault.pos[0])
    throw new WorldError(`${path}:${line}:${col}: ${fault.message}`)
  }
  const placeOf: PlaceOf = (keys, isAboutName) => {
    for (let length = keys.length; length > 0; length--) {
      const parent = length === 1 ? document.contents : document.getIn(keys.slice(0, length - 1), true)
      const name = isAboutName && isMap(parent) ? keyOf(parent, keys[length - 1]!) : undefined
      const node = (name ?? document.getIn(keys.slice(0, length), true)) as Node | undefined
      if (node?.range) {
        const { line, col } = lines.linePos(node.range[0])
        return `${path}:${line}:${col}`
      }
    }
    return path
  }
  return { plan: readPlan(document.toJS() ?? {}, placeOf), directory: dirname(resolve(path)) }
}

/** Reads a world that is given as a value. Throws `WorldError`. */
export function planWorld(world: WorldText): WorldPlan {
  return readPlan(world, () => 'world')
}

/** Where a field stands, or its name. */
type PlaceOf = (keys: readonly PropertyKey[], isAboutName: boolean) => string

function keyOf(map: YAMLMap, name: PropertyKey): unknown {
  return map.items.find(({ key }) => isScalar(key) && String(key.value) === String(name))?.key
}

function readPlan(value: unknown, placeOf: PlaceOf): WorldPlan {
  const read = worldSchema.safeParse(value)
  if (read.success) return read.data
  const complaints = read.error.issues
    .flatMap((issue) => innermost(issue))
    .map((issue) => {
      const isUnknown = issue.code === 'unrecognized_keys'
      const keys = isUnknown ? [...issue.path, issue.keys[0]!] : issue.path
      const what = isUnknown ? `there is no field ${issue.keys.join(', ')} here` : issue.message
      return `${placeOf(keys, isUnknown)}: ${keys.map(String).join('.') || 'the world'}: ${what}`
    })
  throw new WorldError(complaints.join('\n'))
}

/** Loads world files, which describe a cloud. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { isMap, isScalar, LineCounter, parseDocument, type Node, type YAMLMap } from 'yaml'
import { complaintsOf, inWords } from '../issues'
import { misnomersOf } from './names'
import { worldSchema, type WorldPlan, type WorldText } from './schema'

/** An invalid world; the message names file, line and field, and the correction. */
export class WorldError extends Error {}

export interface LoadedWorld {
  plan: WorldPlan
  /** The base folder for relative paths of recordings. */
  directory: string
}

/** Reads a world file, YAML or JSON. Throws `WorldError`. */
export function loadWorld(path: string): LoadedWorld {
  if (!existsSync(path))
    throw new WorldError(`there is no world file ${path}; give the path of a YAML or JSON file`)
  const lines = new LineCounter()
  const document = parseDocument(textOf(path), {
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

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error)
    throw new WorldError(`the world file ${path} cannot be read (${why}); give a YAML or JSON file`)
  }
}

/** Checks a world that is given as a value. Throws `WorldError`. */
export function planWorld(world: WorldText): WorldPlan {
  return readPlan(world, () => 'world')
}

/** Returns the position of a field, or its name. */
type PlaceOf = (keys: readonly PropertyKey[], isAboutName: boolean) => string

function keyOf(map: YAMLMap, name: PropertyKey): unknown {
  return map.items.find(({ key }) => isScalar(key) && String(key.value) === String(name))?.key
}

function readPlan(value: unknown, placeOf: PlaceOf): WorldPlan {
  const read = worldSchema.safeParse(value, { error: inWords })
  const wrong = read.success
    ? misnomersOf(read.data).map((each) => ({ ...each, isUnknown: false }))
    : complaintsOf(read.error)
  if (read.success && wrong.length === 0) return read.data
  throw new WorldError(
    wrong.map(({ path, isUnknown, words }) => `${placeOf(path, isUnknown)}: ${words}`).join('\n'),
  )
}

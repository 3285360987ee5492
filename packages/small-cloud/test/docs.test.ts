import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { parse } from 'yaml'
import { Control } from '../src/control'
import { DURATIONS } from '../src/world/durations'
import { faultSchema } from '../src/world/fault-schema'
import { planWorld } from '../src/world/load'
import { makeWorld } from '../src/world/world'
import { worldSchema, type WorldText } from '../src/world/schema'

const PAGE = ['WORLDS.md', 'README.md']
  .map((name) => readFileSync(join(__dirname, '..', name), 'utf8'))
  .join('\n')

/** First cells of the table below a heading, or of the first table. */
function rowsBelow(heading: string): string[] {
  const text = PAGE.slice(PAGE.indexOf(heading))
  const table = /\n\|[^\n]*\|\n\|-+[^\n]*\n((?:\|[^\n]*\n)+)/.exec(text)![1]!
  return [...table.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name!)
}

describe('the page of the small cloud', () => {
  it('has a world that is one', () => {
    const [, yaml] = /```yaml\n([^]*?)```/.exec(PAGE)!
    const world = makeWorld({ plan: planWorld(parse(yaml!) as WorldText), directory: '/' })
    expect([world.speed, world.faults.length, world.regions.get('us-east-1')!.subnets.length]).toEqual([
      60, 2, 2,
    ])
  })

  it('lists every field, duration, fault and endpoint, and no others', () => {
    expect(rowsBelow('## Fields')).toEqual(Object.keys(worldSchema.shape))
    expect(rowsBelow('## Durations').sort()).toEqual(Object.keys(DURATIONS).sort())
    expect(rowsBelow('## Faults').sort()).toEqual(
      faultSchema.options.map(({ shape }) => shape.fault.value).sort(),
    )
    const doors = new Control({} as never).doors()
    expect(rowsBelow('## Control endpoints').sort()).toEqual(
      doors.map((door) => door.replace(' ', ' /_sim/')).sort(),
    )
  })
})

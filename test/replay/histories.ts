/** The golden histories as files: one event a line, so that a change of one event is a change of one line. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const HISTORIES = join(__dirname, 'histories')
const SHOWN = join(__dirname, 'shown')
/** Raised when workflows change in a way that old histories cannot follow without `patched()`. */
const VERSION = 'v1'

/** The history of a scenario that is recorded now. */
export const pathOf = (scenario: string): string => join(HISTORIES, `${scenario}.${VERSION}.json`)

export const historyFiles = (): string[] => readdirSync(HISTORIES).sort()

/** The scenario of a history; one scenario may have histories of several versions. */
export const scenarioOf = (file: string): string => file.replace(/\.v\d+\.json$/, '')

export function readHistory<T>(file: string): { events: T[] } {
  return JSON.parse(readFileSync(join(HISTORIES, file), 'utf8')) as { events: T[] }
}

const LIVED = '.lived-'

/** Whether an end-to-end test lived through it. */
export const isLived = (file: string): boolean => file.includes(LIVED)

/** Adds a history that a test lived through. Returns its name. */
export function addLived(workflow: string, events: readonly unknown[]): string {
  const prefix = `${workflow}${LIVED}`
  const numbers = historyFiles()
    .filter((file) => file.startsWith(prefix))
    .map((file) => Number.parseInt(file.slice(prefix.length), 10))
  const name = `${prefix}${Math.max(0, ...numbers) + 1}`
  writeFileSync(pathOf(name), textOf({ events }))
  return name
}

export function textOf({ events }: { events: readonly unknown[] }): string {
  return `{"events":[\n${events.map((event) => JSON.stringify(event)).join(',\n')}\n]}\n`
}

/** What a replay of a history shows by its queries, and gives to its local activities: a JSON object a line. */
export const shownPathOf = (file: string): string => join(SHOWN, file.replace(/json$/, 'jsonl'))

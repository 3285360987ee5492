/** Faults in words, with their places in a file. */
import { stringify } from 'yaml'
import type { z } from 'zod'
import { formatPath, type Fault, type Path, type Problem } from './problem'
import { exampleAt } from './schema-walk'
import type { YamlText } from './yaml-text'

/** People fix a few problems at a time; more problems would hide the first. */
export const PROBLEMS_MAX = 20

/** The problems of a file, in the order of their places. */
export function problemsIn(
  faults: readonly Fault[],
  { file, yaml, schema }: { file: string; yaml: YamlText; schema: z.core.$ZodType },
): Problem[] {
  const problems = faults.map((fault) => ({
    file,
    ...yaml.placeOf(fault.path, fault.isAboutName ?? false),
    ...wordsOf(fault, { schema, write: writeField }),
  }))
  problems.sort((a, b) => a.line - b.line || a.column - b.column)
  return problems.slice(0, PROBLEMS_MAX)
}

/** A fault in words; without a remedy, an example serves as one. */
export function wordsOf(
  { path, message, remedy }: Fault,
  { schema, write }: { schema: z.core.$ZodType; write: (path: Path, example: unknown) => string },
): Pick<Problem, 'path' | 'message' | 'remedy'> {
  const words = { path: formatPath(path), message }
  if (remedy !== undefined) return { ...words, remedy }
  const found = exampleAt(schema, path)
  return {
    ...words,
    remedy: found === undefined ? 'remove it' : `write, for example, ${write(found.path, found.example)}`,
  }
}

export function writeField(path: Path, example: unknown): string {
  return `${String(path.at(-1))}: ${stringify(example, { collectionStyle: 'flow', lineWidth: 0 }).trim()}`
}

// Selects the tests that can catch a mutant of a file: those that import it, nearest first.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { filesOf, ROOT } from '../content.mjs'

const { rooms } = JSON.parse(readFileSync(join(ROOT, 'tools', 'import-law.json'), 'utf8'))
const ROOMS = [...Object.keys(rooms), 'test']
/** A test of another room that reaches a file through more imports than this rarely checks it. */
const DISTANCE_MAX = 3
/** Maximum number of selected test files. */
const FILES_MAX = 16
/** Tests that take minutes, or check other parts: the tools, the machine's runner, a package, whole programs. */
const LEFT_OUT =
  /^test\/(tools|runner|small-cloud|habits|crashes|torn|examples|docs|deployment|attacks|money)\/|\.e2e\.test\.ts$/

/** Replays what a former version recorded. */
const RELEASE = /^test\/replay\/release\.test\.ts$/

/** Tests of workflow code, which load it in a bundle and not by import. Policy is not workflow code. */
const OF_WORKFLOWS = /^test\/(workflows|replay)\//

/**
 * Returns the test files that can catch a mutant of this file, in run order: `unit` tests need no server, `temporal` tests need one and are
 * used only for workflows.
 */
export function testsOf(file, imports = readImports()) {
  const distances = distancesTo(file, imports)
  const near = [...distances]
    .filter(
      ([path, distance]) =>
        path.endsWith('.test.ts') &&
        !LEFT_OUT.test(path) &&
        !(file.startsWith('planner/') && OF_WORKFLOWS.test(path)) &&
        (distance <= DISTANCE_MAX || isOwn(path, file)),
    )
    .sort(([one, a], [other, b]) => isOwn(other, file) - isOwn(one, file) || a - b || (one < other ? -1 : 1))
    .map(([path]) => path)
    .slice(0, FILES_MAX)
  if (!file.startsWith('workflows/')) return { unit: near, temporal: [] }
  // A replay bundles the workflows first, which takes longest.
  const bundled = [...imports.keys()]
    .filter((path) => OF_WORKFLOWS.test(path) && path.endsWith('.test.ts') && !RELEASE.test(path))
    .sort((one, other) => isOwn(other, file) - isOwn(one, file))
  const isEnd = (path) => path.endsWith('.e2e.test.ts')
  return {
    unit: [...new Set([...near, ...bundled.filter((path) => !isEnd(path))])],
    temporal: bundled.filter(isEnd),
  }
}

/** The tests of the same room come first: `test/planner` for `planner/`. */
const isOwn = (test, file) => test.startsWith(`test/${file.split('/')[0]}/`)

/** Returns the number of imports between a file and each file that reaches it. */
function distancesTo(file, imports) {
  const distances = new Map([[file, 0]])
  let edge = [file]
  for (let distance = 1; edge.length > 0; distance += 1) {
    const isOnEdge = new Set(edge)
    edge = [...imports].flatMap(([path, targets]) =>
      !distances.has(path) && targets.some((target) => isOnEdge.has(target)) ? [path] : [],
    )
    for (const path of edge) distances.set(path, distance)
  }
  return distances
}

/** Maps each source file to the source files that it imports, without type-only imports, which run nothing. */
export function readImports(rooms = ROOMS) {
  const sources = filesOf(...rooms).filter((path) => path.endsWith('.ts'))
  return new Map(sources.map((path) => [path, importsOf(path)]))
}

function importsOf(path) {
  const text = readFileSync(join(ROOT, path), 'utf8')
  const statements = text.matchAll(
    /(?:^(?:import|export)(?! type\b)[^']*?from|import\(|require\()\s*'([.#][^']*)'/gm,
  )
  return [...statements].flatMap(([, target]) => {
    const base = target.startsWith('#')
      ? target.replace('#', 'packages/').replace(/^packages\/[^/]+/, '$&/src')
      : join(dirname(path), target)
    return [`${base}.ts`, `${base}/index.ts`].filter((candidate) => existsSync(join(ROOT, candidate)))
  })
}

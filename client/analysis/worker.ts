/** The thread in which `analyze` reads programs (`client/analysis/thread.ts`): answers one message. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import {
  analyze,
  analyzeAndSuggest,
  loadPython,
  type PythonParser,
} from '../../packages/analyzer/src/analyze'
import type { AnalysisAnswer, AnalysisWork } from './thread'
import { projectFiles } from './project-files'

async function answerTo({ root, command, isSuggestionWanted }: AnalysisWork): Promise<AnalysisAnswer> {
  try {
    const parser = await loadGrammar()
    const request = { files: projectFiles(root), command }
    return isSuggestionWanted ? analyzeAndSuggest(parser, request) : { analysis: analyze(parser, request) }
  } catch (error) {
    const isTooDeep = error instanceof RangeError
    return {
      problem: isTooDeep
        ? 'could not be analyzed: it is nested too deeply'
        : `could not be analyzed: ${error instanceof Error ? error.message : String(error)}`,
    }
  }
}

/** The grammar is an asset of the build; a checkout has it in its development package. */
function loadGrammar(): Promise<PythonParser> {
  const built = join(__dirname, '..', '..', 'packages', 'analyzer', 'src', 'tree-sitter-python.wasm')
  const python = existsSync(built) ? built : require.resolve('tree-sitter-python/tree-sitter-python.wasm')
  const engine = require.resolve('web-tree-sitter/web-tree-sitter.wasm')
  return loadPython({ engine: readFileSync(engine), python: readFileSync(python) })
}

void answerTo(workerData as AnalysisWork).then((answer) => parentPort?.postMessage(answer))

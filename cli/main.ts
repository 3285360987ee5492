#!/usr/bin/env node
import module, { createRequire } from 'node:module'
import { withoutAliases } from './aliases'
import { loadQuick } from './quick'
import type * as start from './start'

// Node 22.8 and later keep what they compiled, which makes the next start faster; only what is loaded after this gains by it.
const { enableCompileCache } = module as { enableCompileCache?: () => unknown }
enableCompileCache?.()

const { startProcess } =
  loadQuick(withoutAliases(process.argv.slice(2))) ?? (createRequire(__filename)('./start') as typeof start)
startProcess()

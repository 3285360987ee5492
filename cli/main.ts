#!/usr/bin/env node
import module, { createRequire } from 'node:module'
import { withoutAliases } from './kit/aliases'
import { loadQuick } from './quick'
import type * as start from './start'

// Node 22.8 and later cache compiled code, which speeds up the next start; only modules loaded after this line benefit.
const { enableCompileCache } = module as { enableCompileCache?: () => unknown }
enableCompileCache?.()

const { startProcess } =
  loadQuick(withoutAliases(process.argv.slice(2))) ?? (createRequire(__filename)('./start') as typeof start)
startProcess()

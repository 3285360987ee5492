#!/usr/bin/env node
import { createRequire } from 'node:module'
import { withoutAliases } from './kit/aliases'
import { enableCompileCache } from './kit/compile-cache'
import { loadQuick } from './quick'
import type * as start from './start'

enableCompileCache()

const { startProcess } =
  loadQuick(withoutAliases(process.argv.slice(2))) ?? (createRequire(__filename)('./start') as typeof start)
startProcess()

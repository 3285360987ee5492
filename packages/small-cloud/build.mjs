// Builds dist/ of this package alone. In the product's tree its code is part of the product's build instead.
import { spawnSync } from 'node:child_process'
import { cpSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, extname, join } from 'node:path'

const ROOT = import.meta.dirname
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')

rmSync(join(ROOT, 'dist'), { recursive: true, force: true })
const { status } = spawnSync(process.execPath, [tsc, '-p', ROOT], { stdio: 'inherit' })
if (status !== 0) process.exit(1)
// Whether a file is an asset: programs of machines and the table of instance types, which the code reads from its own folder.
const isAsset = (path) => extname(path) !== '.ts' && basename(path) !== '__pycache__'
cpSync(join(ROOT, 'src'), join(ROOT, 'dist'), { recursive: true, filter: isAsset })

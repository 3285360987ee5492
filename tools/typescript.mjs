// Lets `require` load TypeScript sources instead of a build, which may be older: `import './typescript.mjs'`.
import { readFileSync } from 'node:fs'
import Module from 'node:module'
import { transformSync } from '@swc/core'

Module._extensions['.ts'] = (module, filename) => {
  const { code } = transformSync(readFileSync(filename, 'utf8'), {
    filename,
    jsc: { target: 'es2022', parser: { syntax: 'typescript' } },
    module: { type: 'commonjs' },
  })
  module._compile(code, filename)
}

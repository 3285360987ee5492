/** Options of the program's command line, by every library that defines them. */
import type { Frame, Interpreter } from '../interpreter'
import type { CallEvent, Value } from '../values'
import { argparseResult } from './argparse'
import { abslResult } from './absl'
import { dataclassResult } from './dataclasses'
import { functionResult } from './functions'
import { hydraResult } from './hydra'
import { lightningResult } from './lightning'
import { megatronResult } from './megatron'
import { yacsResult } from './yacs'

/** Returns the result of a call about options; `undefined` for every other call. */
export function optionsResult(run: Interpreter, event: CallEvent, frame: Frame): Value | undefined {
  return (
    argparseResult(run, event) ??
    abslResult(run, event, frame) ??
    dataclassResult(run, event, frame) ??
    functionResult(run, event, frame) ??
    hydraResult(run, event, frame) ??
    lightningResult(run, event, frame) ??
    megatronResult(run, event, frame) ??
    yacsResult(run, event)
  )
}

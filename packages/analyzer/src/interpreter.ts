/**
 * Reads a program in its order of execution, without running it: calls of the project's own functions are followed, both branches of a
 * condition are read, and a loop's body is read once. The calls are kept, each with its arguments, the surrounding loops and conditions.
 */
import { MODELLED } from './names'
import { isKnownPackage } from './packages'
import type { Project } from './project'
import { folderOf, joined, pathFrom } from './project'
import type { SourceFile, SyntaxNode } from './syntax'
import type { Guard, Loop } from './flow'
import {
  constant,
  extern,
  Scope,
  type CallEvent,
  type ClassDefinition,
  type FunctionDefinition,
  type Option,
  type Value,
} from './values'

/** A place where the program refuses to continue. */
export interface Stop {
  kind: 'raise' | 'exit' | 'assert'
  guards: readonly Guard[]
  /** Condition of an assertion. */
  condition: Value | undefined
  text: string
  file: string
  line: number
}

/** The code that is being read. */
export interface Frame {
  scope: Scope
  loops: readonly Loop[]
  /** How many of the loops are around the call of the function, which its `return` does not leave. */
  loopsOfCaller: number
  guards: readonly Guard[]
  /** How many of the conditions are around the call of the function, which its own names do not depend on. */
  guardsOfCaller: number
  within: readonly string[]
  /** Functions being followed, against recursion. */
  stack: readonly FunctionDefinition[]
  self: Value | undefined
  /** Values that it returns, and whether it certainly does not reach the statement. */
  returns: { value: Value; truth: boolean | undefined }[]
  /** An exception handler, whose assignments are exceptions too. */
  isRare: boolean
}

/** How the options of a program are defined. */
export type CliStyle =
  | 'argparse'
  | 'click'
  | 'typer'
  | 'absl'
  | 'dataclasses'
  | 'hydra'
  | 'lightning-cli'
  | 'configurator'
  | 'fire'
  | 'tyro'
  | 'none'

/** The parts of the reader, which call each other. */
export interface Reading {
  evaluate(run: Interpreter, node: SyntaxNode, frame: Frame): Value
  runBlock(run: Interpreter, block: SyntaxNode, frame: Frame): boolean
  callFunction(run: Interpreter, called: FunctionValue, given: Given): Value
  dispatch(run: Interpreter, call: Call, frame: Frame): Value
}

export type FunctionValue = Extract<Value, { kind: 'function' }>

/** Arguments of a function call, and its place. */
export interface Given {
  positional: readonly Value[]
  named: ReadonlyMap<string, Value>
  frame: Frame
}

export interface Call {
  callee: Value
  node: SyntaxNode
  given: { positional: Value[]; named: Map<string, Value> }
}

/** Nodes to read at most; a program that needs more is read in part. */
const STEPS_MAX = 600_000
const EVENTS_MAX = 30_000

export class Interpreter {
  readonly events: CallEvent[] = []
  readonly stops: Stop[] = []
  readonly options: Option[] = []
  readonly loops: Loop[] = []
  /** Classes of the project that were instantiated. */
  readonly instances = new Set<Extract<Value, { kind: 'instance' }>>()
  /** The loops around the creation of an instance, by its attributes. */
  readonly births = new Map<ReadonlyMap<string, Value>, readonly Loop[]>()
  readonly calls = new Map<FunctionDefinition, number>()
  /** Classes whose hooks were read. */
  readonly hooked = new Set<ClassDefinition>()
  /** Modules whose parameters the program excludes from training. */
  readonly frozen: Value[] = []
  /** Environment variables that the program reads. */
  readonly variables = new Set<string>()
  /** Names of packages that the program imports, with the first place. */
  readonly imports = new Map<string, { file: string; line: number; text: string }>()
  /** Modules that are neither in the project nor in a known package, by their names as written. */
  readonly unresolved = new Map<string, { file: string; line: number; text: string }>()
  /** Options of a library's dataclass, such as TrainingArguments. */
  readonly baseOptions = new Set<string>()
  style: CliStyle = 'none'
  /** Whether the program runs in another folder than the one that it was started in. */
  changesFolder = false
  isCut = false
  /** Whether the configuration of the program was not found, which decides what it does. */
  lacksConfiguration = false
  #steps = 0
  readonly #modules = new Map<string, Scope>()

  readonly project: Project
  /** The arguments of the program's command line. */
  readonly args: readonly string[]
  readonly entry: string
  /** Whether a launcher of several processes starts it, which sets variables such as `RANK`. */
  readonly isLaunched: boolean
  /** Processes on one machine, if the command says so. */
  readonly processes: number | undefined

  constructor(
    {
      project,
      args,
      entry,
      isLaunched,
      processes,
    }: {
      project: Project
      args: readonly string[]
      entry: string
      isLaunched: boolean
      processes: number | undefined
    },
    private readonly reading: Reading,
  ) {
    this.project = project
    this.args = args
    this.entry = entry
    this.isLaunched = isLaunched
    this.processes = processes
  }

  /** Constants at the top of the program's modules. */
  get constants(): { kind: string; value: Value }[] {
    return [...this.#modules.values()].flatMap(({ names }) =>
      [...names].map(([kind, value]) => ({ kind, value })),
    )
  }

  evaluate(node: SyntaxNode, frame: Frame): Value {
    return this.reading.evaluate(this, node, frame)
  }

  runBlock(block: SyntaxNode, frame: Frame): boolean {
    return this.reading.runBlock(this, block, frame)
  }

  callFunction(called: FunctionValue, given: Given): Value {
    return this.reading.callFunction(this, called, given)
  }

  dispatch(call: Call, frame: Frame): Value {
    return this.reading.dispatch(this, call, frame)
  }

  run(): void {
    const source = this.project.source(this.entry)
    if (source !== undefined) this.#runModule(source, '__main__', [])
  }

  /** Counts one step; false when the limit is reached. */
  step(): boolean {
    this.#steps += 1
    if (this.#steps > STEPS_MAX) this.isCut = true
    return !this.isCut
  }

  record(event: CallEvent): void {
    if (this.events.length < EVENTS_MAX) this.events.push(event)
    else this.isCut = true
  }

  /** A module of the project or of a library, by its dotted name. */
  module(name: string, node: SyntaxNode, frame: Frame): Value {
    const top = name.split('.')[0]!
    if (MODELLED.has(top) && !this.project.isPlainModule(top, this.entry))
      return this.#library(name, node, frame)
    const file =
      this.project.moduleFile(name, this.entry) ?? this.project.moduleFile(name, frame.scope.file.path)
    if (file !== undefined && file !== this.entry) {
      const source = this.project.source(file)
      if (source !== undefined) return this.#moduleValue(source, name, frame)
    }
    const outside = this.#library(name, node, frame)
    return this.project.hasFolder(top, this.entry)
      ? { ...constant(null), kind: 'module', scope: new Scope(frame.scope.file, undefined), name }
      : outside
  }

  #library(name: string, node: SyntaxNode, frame: Frame): Value {
    const top = name.split('.')[0]!
    if (!isKnownPackage(top)) this.noteUnresolved(top, node, frame)
    if (!this.imports.has(name))
      this.imports.set(name, { file: frame.scope.file.path, line: node.line, text: firstLine(node.text) })
    return extern(name)
  }

  /** Keeps the first place where the program imports a module that is not found. */
  noteUnresolved(name: string, node: SyntaxNode, { scope }: Frame): void {
    if (!this.unresolved.has(name))
      this.unresolved.set(name, { file: scope.file.path, line: node.line, text: firstLine(node.text) })
  }

  /** A module named relative to the file that imports it. */
  relativeModule(dots: number, name: string, frame: Frame): Value | undefined {
    let folder = folderOf(frame.scope.file.path)
    for (let up = 1; up < dots; up += 1) folder = folderOf(folder)
    const path = name.split('.').join('/')
    const candidates = path === '' ? ['__init__.py'] : [`${path}.py`, `${path}/__init__.py`]
    for (const candidate of candidates) {
      const source = this.project.source(joined(folder, candidate))
      if (source !== undefined) return this.#moduleValue(source, name, frame)
    }
    return undefined
  }

  /** A module inside a package of the project. */
  submodule(scope: Scope, name: string, frame: Frame): Value | undefined {
    const folder = folderOf(scope.file.path)
    for (const candidate of [`${name}.py`, `${name}/__init__.py`]) {
      const source = this.project.source(joined(folder, candidate))
      if (source !== undefined) return this.#moduleValue(source, name, frame)
    }
    return undefined
  }

  /** Runs a file's statements in a scope, as `exec` does. */
  execFile(path: string, frame: Frame): boolean {
    const source =
      this.project.source(joined(this.project.folder, path)) ??
      this.project.source(joined(folderOf(frame.scope.file.path), path))
    if (source === undefined) return false
    this.runBlock(source.root, { ...frame, scope: frame.scope.in(source) })
    return true
  }

  #moduleValue(source: SourceFile, name: string, frame: Frame): Value {
    const scope = this.#modules.get(source.path) ?? this.#runModule(source, name, frame.stack)
    return { ...constant(null), kind: 'module', scope, name }
  }

  #runModule(source: SourceFile, name: string, stack: readonly FunctionDefinition[]): Scope {
    const scope = new Scope(source, undefined)
    // The scope is registered before its statements run, so that a cycle of imports finds the names defined so far.
    this.#modules.set(source.path, scope)
    scope.put('__name__', constant(name))
    scope.put('__file__', constant(pathFrom(this.project.folder, source.path)))
    const frame: Frame = {
      scope,
      loops: [],
      loopsOfCaller: 0,
      guards: [],
      guardsOfCaller: 0,
      within: [],
      stack,
      self: undefined,
      returns: [],
      isRare: false,
    }
    this.runBlock(source.root, frame)
    return scope
  }
}

export function firstLine(text: string): string {
  return text.split('\n')[0]!.trim()
}

/** Whether the program takes this path: `undefined` if only a run shows it. */
export function truthOfGuards(guards: readonly Guard[]): boolean | undefined {
  if (guards.some(({ truth }) => truth === false)) return false
  return guards.every(({ truth }) => truth === true) ? true : undefined
}

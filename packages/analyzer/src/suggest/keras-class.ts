/** The callback that saves and restores all that a training with Keras depends on. */
import type { Facts } from '../facts'
import { nodesOf, type SyntaxNode } from '../syntax'
import type { Line, Writing } from './writing'

/** The expression by which a file reaches Keras, which it imports if it does not yet. */
function kerasIn(writing: Writing): string {
  const { root } = writing.source
  const names = new Map([
    ['keras', 'keras'],
    ['tensorflow.keras', 'tensorflow.keras'],
    ['tensorflow', 'tf'],
  ])
  for (const module of names.keys()) {
    const found = [...nodesOf(root)].find((node) => bindsModule(node, module))
    if (found === undefined) continue
    const alias = found.children.find(({ field }) => field === 'name')!
    const name =
      alias.children.length > 1 && alias.type === 'aliased_import' ? alias.children[1]!.text : alias.text
    return module === 'tensorflow' ? `${name}.keras` : name
  }
  return writing.module('keras')
}

/** `import keras`, `import tensorflow as tf`, `from tensorflow import keras` */
function bindsModule(node: SyntaxNode, module: string): boolean {
  const names = node.children
    .filter(({ field }) => field === 'name')
    .map((each) => (each.type === 'aliased_import' ? each.children[0]! : each).text)
  if (node.type === 'import_statement') return names.length === 1 && names[0] === module
  const from =
    node.type === 'import_from_statement'
      ? node.children.find(({ field }) => field === 'module_name')?.text
      : undefined
  return module === 'keras' && from === 'tensorflow' && names.length === 1 && names[0] === 'keras'
}

/** The variables of a model include the state of the random numbers of its layers, which `save_weights` leaves out. */
const PARTS = [
  { key: 'model', variables: 'self.model.variables' },
  { key: 'optimizer', variables: 'self.model.optimizer.variables' },
]

export function checkpointClass(writing: Writing, name: string, { run }: Facts): Line[] {
  const keras = kerasIn(writing)
  const [os, pickle, random, sys] = ['os', 'pickle', 'random', 'sys'].map((module) =>
    writing.module(module),
  ) as [string, string, string, string]
  const numpy = writing.module('numpy', 'np')
  const torch = run.imports.has('torch') ? writing.module('torch') : undefined
  const draws: [key: string, saved: string, restore: string][] = [
    ['python_random', `${random}.getstate()`, `${random}.setstate`],
    ['numpy_random', `${numpy}.random.get_state()`, `${numpy}.random.set_state`],
    ...(torch === undefined
      ? []
      : [['torch_random', `${torch}.get_rng_state()`, `${torch}.set_rng_state`] as [string, string, string]]),
  ]
  return [
    [0, `class ${name}(${keras}.callbacks.Callback):`],
    [1, '"""Saves everything after each epoch, and restores what an earlier run has saved."""'],
    [0, ''],
    [1, 'def __init__(self, folder, resume_from):'],
    [2, 'super().__init__()'],
    [2, `${os}.makedirs(folder, exist_ok=True)`],
    [2, `self.path = ${os}.path.join(folder, "checkpoint.pkl")`],
    [2, 'self.saved, self.logs = None, []'],
    [2, 'if resume_from:'],
    [3, 'with open(resume_from, "rb") as file:'],
    [4, `self.saved = ${pickle}.load(file)`],
    [3, 'self.logs = self.saved["logs"]'],
    [2, 'self.first_epoch = 0'],
    [2, 'if self.saved:'],
    [3, `self.first_epoch = ${sys}.maxsize if self.saved["stopped"] else self.saved["epoch"] + 1`],
    [0, ''],
    [1, 'def on_train_begin(self, logs=None):'],
    [2, 'if not self.saved:'],
    [3, 'return'],
    [2, 'if not self.model.optimizer.built:'],
    [3, 'self.model.optimizer.build(self.model.trainable_variables)'],
    ...PARTS.flatMap(({ key, variables }): Line[] => [
      [2, `for variable, value in zip(${variables}, self.saved["${key}"]):`],
      [3, 'variable.assign(value)'],
    ]),
    ...draws.map(([key, , restore]) => [2, `${restore}(self.saved["${key}"])`] as const),
    [0, ''],
    [1, 'def on_epoch_end(self, epoch, logs=None):'],
    [2, 'self.logs.append(dict(logs or {}))'],
    [2, 'state = {'],
    [3, '"epoch": epoch,'],
    [3, '"stopped": self.model.stop_training,'],
    [3, '"logs": self.logs,'],
    ...PARTS.map(({ key, variables }): Line => [
      3,
      `"${key}": [${keras}.ops.convert_to_numpy(variable) for variable in ${variables}],`,
    ]),
    ...draws.map(([key, saved]): Line => [3, `"${key}": ${saved},`]),
    [2, '}'],
    [2, 'with open(self.path + ".tmp", "wb") as file:'],
    [3, `${pickle}.dump(state, file)`],
    [3, 'file.flush()'],
    [3, `${os}.fsync(file.fileno())`],
    [2, `${os}.replace(self.path + ".tmp", self.path)`],
    [0, ''],
    [1, 'def on_train_end(self, logs=None):'],
    [2, '# What fit returns also has the epochs of the earlier run.'],
    [2, `history = self.model.history = ${keras}.callbacks.History()`],
    [2, 'history.epoch = list(range(len(self.logs)))'],
    [2, 'for each in self.logs:'],
    [3, 'for key, value in each.items():'],
    [4, 'history.history.setdefault(key, []).append(value)'],
  ]
}

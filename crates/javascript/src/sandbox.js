// What a map or reduce function finds around it, and what Rust calls to run it. Evaluated first in a new engine.
// Nothing in here may look up anything that a script can change: built-in functions are taken now, and texts are
// built by operators.
(function (host, emittedMax, emittedBytesMax, logMax, moduleTexts) {
  'use strict';
  const { apply } = Reflect;
  const { parse, stringify } = JSON;
  const { create, freeze, keys: ownNames, setPrototypeOf } = Object;
  const { isArray } = Array;
  const { slice, toWellFormed } = String.prototype;
  const PlainError = Error, EngineError = InternalError, LengthError = RangeError, GrammarError = SyntaxError;
  const TEXT_MAX = 1000;

  const functions = setPrototypeOf([], null);
  const emittedKeys = setPrototypeOf([], null);
  const emittedValues = setPrototypeOf([], null);
  let emitted = 0, logged = 0, excess = false, document = null, restore = null;

  function begin() {
    emitted = 0;
    emittedKeys.length = 0;
    emittedValues.length = 0;
    logged = 0;
    excess = false;
  }

  function putBack() {
    try {
      restore();
    } catch {
      host.damaged();
    }
  }

  function emit(key, value) {
    if (emitted === emittedMax) {
      excess = true;
      throw new LengthError('too much is emitted for one document');
    }
    emittedKeys[emitted] = key;
    emittedValues[emitted] = value;
    emitted++;
  }

  function sum(values) {
    let total = 0;
    if (isArray(values)) {
      for (let place = 0; place < values.length; place++) total += values[place];
    } else {
      for (const name in values) total += values[name];
    }
    return total;
  }

  function shown(value) {
    let text = typeof value === 'string' ? value : stringify(value);
    if (text === undefined) text = typeof value;
    return apply(toWellFormed, apply(slice, text, [0, TEXT_MAX]), []);
  }

  function log(value) {
    if (logged < logMax) {
      logged++;
      host.log(shown(value));
    }
  }

  // CommonJS modules, as CouchDB loads them from `views.lib`. A module that is required in a circle is given as far
  // as it has come.
  const texts = moduleTexts === undefined ? create(null) : setPrototypeOf(parse(moduleTexts), null);
  const modules = create(null);

  function requirer(folder) {
    return function require(name) {
      const path = host.resolve(folder, `${name}`);
      if (texts[path] === undefined) throw new PlainError(`invalid_require_path: there is no module ${path}`);
      if (modules[path] === undefined) {
        const module = { id: path, exports: {} };
        const parent = host.resolve(path, '..');
        modules[path] = module;
        let done = false;
        try {
          apply(host.module(path, texts[path]), globalThis, [module, module.exports, requirer(parent)]);
          done = true;
        } finally {
          if (!done) modules[path] = undefined;
        }
      }
      return modules[path].exports;
    };
  }

  function sealed(value) {
    freeze(value);
    const names = ownNames(value);
    for (let place = 0; place < names.length; place++) {
      const inner = value[names[place]];
      if (typeof inner === 'object' && inner !== null) sealed(inner);
    }
  }

  // A line of JSON for each key and each value; JSON that is not indented has no line ends of its own.
  function lines() {
    let text = '';
    for (let place = 0; place < emitted; place++) {
      const key = stringify(emittedKeys[place]);
      const value = stringify(emittedValues[place]);
      text += (key === undefined ? 'null' : key) + '\n' + (value === undefined ? 'null' : value) + '\n';
      if (text.length > emittedBytesMax) return null;
    }
    return text;
  }

  // Named in the order in which Rust takes them.
  return {
    environment: { emit, sum, log, isArray: (value) => isArray(value), require: requirer('') },
    seal(restorer) { restore = restorer; },
    add(candidate) {
      if (typeof candidate !== 'function') return typeof candidate;
      functions[functions.length] = candidate;
      return null;
    },
    open(parsed) {
      document = parsed;
      if (typeof parsed === 'object' && parsed !== null) sealed(parsed);
    },
    // The lines that function `index` emitted for the document; null if they are too many.
    map(index) {
      begin();
      try {
        functions[index](document);
        return excess ? null : lines();
      } catch (thrown) {
        if (excess) return null;
        throw thrown;
      } finally {
        putBack();
      }
    },
    reduce(keys, values, again) {
      begin();
      try {
        const text = stringify(functions[0](again ? null : keys, values, again));
        return text === undefined ? 'null' : text;
      } finally {
        putBack();
      }
    },
    // What was thrown: a letter for its kind, where it came from, and a text for people.
    describe(thrown) {
      begin();
      try {
        if (!(thrown instanceof PlainError)) return `T\n\n${shown(thrown)}`;
        const stack = `${thrown.stack}`, message = `${thrown.message}`;
        let kind = 'T';
        if (thrown instanceof EngineError && message === 'out of memory') kind = 'M';
        if (thrown instanceof LengthError && message === 'Maximum call stack size exceeded') kind = 'S';
        if (thrown instanceof GrammarError) kind = 'X';
        const first = apply(slice, stack, [0, TEXT_MAX]);
        return `${kind}\n${stringify(first)}\n${shown(kind === 'X' ? message : `${thrown.name}: ${message}`)}`;
      } catch {
        return 'T\n\na value that cannot be shown';
      }
    },
  };
})

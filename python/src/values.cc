
#include "binding.h"

namespace epona::python {

using namespace nb::literals;

namespace {

nb::object numpy() { return nb::module_::import_("numpy"); }

/// The elements of an int64, float, double or string tensor as Python scalars.
nb::list scalars(const Tensor& tensor) { return nb::cast<nb::list>(tensor_to_python(tensor).attr("tolist")()); }

RuntimeValue map_from_dict(nb::dict dict, const Type& type) {
  nb::object keys = numpy().attr("array")(nb::list(dict.keys()), "dtype"_a = numpy_dtype(type.elem));
  nb::object values = numpy().attr("array")(nb::list(dict.values()),
                                            "dtype"_a = numpy_dtype(type.inner ? type.inner->elem : DataType::float32));
  return RuntimeValue::of_map({tensor_from_array(keys), tensor_from_array(values)});
}

RuntimeValue unnamed_value(nb::handle object, const Type& type, const std::string& name);

}  // namespace

RuntimeValue* as_ort_value(nb::handle object) {
  RuntimeValue* value = nullptr;
  if (nb::try_cast(object, value)) return value;
  if (nb::hasattr(object, "_ortvalue") && nb::try_cast(object.attr("_ortvalue"), value)) return value;
  return nullptr;
}

RuntimeValue value_from_python(nb::handle object, const Type& type, const std::string& name) {
  try {
    return unnamed_value(object, type, name);
  } catch (nb::python_error& error) {
    // What numpy says of a list or a dict does not say which.
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError) && !error.matches(PyExc_OverflowError))
      throw;
    throw std::runtime_error(cat("Could not create a value for input '", name, "' (", type.to_string(), ") from ",
                                 nb::cast<std::string>(nb::str(object.type())), ": ",
                                 nb::cast<std::string>(nb::str(error.value()))));
  } catch (const UnfitArray& error) {
    throw std::runtime_error(cat(error.what(), ", for input '", name, "' (", type.to_string(), ")"));
  }
}

namespace {

RuntimeValue unnamed_value(nb::handle object, const Type& type, const std::string& name) {
  if (object.is_none()) return {};
  if (PyObject_CheckBuffer(object.ptr()) && nb::hasattr(object, "dtype")) return tensor_from_array(object);
  if (RuntimeValue* value = as_ort_value(object)) return *value;
  // A sparse tensor, or the OrtValue of one: the engine works on dense ones.
  if (nb::hasattr(object, "_ortvalue") && nb::hasattr(object.attr("_ortvalue"), "to_dense"))
    return tensor_from_array(object.attr("_ortvalue").attr("to_dense")());
  if (nb::hasattr(object, "to_dense") && nb::hasattr(object, "dense_shape"))
    return tensor_from_array(object.attr("to_dense")());
  const Type& wanted = type.kind == Type::Kind::optional && type.inner ? *type.inner : type;
  if (nb::isinstance<nb::dict>(object)) return map_from_dict(nb::borrow<nb::dict>(object), wanted);
  bool listed = nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object);
  if (listed && wanted.kind == Type::Kind::sequence) {
    std::vector<RuntimeValue> items;
    static const Type unknown;
    const Type& inner = wanted.inner ? *wanted.inner : unknown;
    for (nb::handle item : object) {
      RuntimeValue value = value_from_python(item, inner, name);
      if (value.kind == RuntimeValue::Kind::tensor) {
        if (inner.is_tensor() && value.tensor.type != inner.elem)
          throw std::runtime_error(cat("input '", name, "': a tensor of ", value.tensor.type,
                                       " cannot be put into a sequence of ", inner.to_string()));
        value.tensor = value.tensor.clone();
      }
      items.push_back(std::move(value));
    }
    return RuntimeValue::sequence(inner.elem, std::move(items));
  }
  bool number =
      nb::isinstance<nb::int_>(object) || nb::isinstance<nb::float_>(object) || nb::isinstance<nb::str>(object);
  if (nb::hasattr(object, "dtype") || listed || number) {
    // Python numbers carry no element type: take the model's. Numbers that it cannot hold are an error.
    bool typed = nb::hasattr(object, "dtype") || !wanted.is_tensor();
    return tensor_from_array(typed ? numpy().attr("asarray")(object)
                                   : numpy().attr("array")(object, "dtype"_a = numpy_dtype(wanted.elem)));
  }
  throw std::runtime_error(cat("Unable to handle object of type ", nb::cast<std::string>(nb::str(object.type())),
                               " for input '", name, "': give a numpy array, an OrtValue, a list or a dict"));
}

}  // namespace

std::string value_type(const RuntimeValue& value) {
  using Kind = RuntimeValue::Kind;
  switch (value.kind) {
    case Kind::none:
      return "none";
    case Kind::tensor:
      return cat("tensor(", value.tensor.type, ")");
    case Kind::map:
      return cat("map(", value.map->keys.type, ",tensor(", value.map->values.type, "))");
    case Kind::sequence:
      if (!value.items->empty()) return cat("seq(", value_type(value.items->front()), ")");
      return cat("seq(tensor(", value.element, "))");
  }
  return "none";
}

nb::object value_to_python(const RuntimeValue& value) {
  switch (value.kind) {
    case RuntimeValue::Kind::none:
      return nb::none();
    case RuntimeValue::Kind::tensor:
      return tensor_to_python(value.tensor);
    case RuntimeValue::Kind::sequence: {
      nb::list list;
      for (const RuntimeValue& item : *value.items) list.append(value_to_python(item));
      return list;
    }
    case RuntimeValue::Kind::map: {
      nb::dict dict;
      nb::list keys = scalars(value.map->keys), values = scalars(value.map->values);
      for (size_t i = 0; i < keys.size(); ++i) dict[keys[i]] = values[i];
      return dict;
    }
  }
  return nb::none();
}

}  // namespace epona::python
